// SPDX-License-Identifier: Apache-2.0
// A small transformer decoder trained with AdamW and clipped gradients.
#include "programs.h"

namespace programs {
namespace {

namespace nn = torch::nn;

constexpr int64_t kVocabulary = 96;
constexpr int64_t kLength = 48;
constexpr int64_t kWidth = 64;
constexpr int64_t kHeads = 4;

struct LayerImpl : nn::Module {
  LayerImpl()
      : norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        qkv(register_module("qkv", nn::Linear(kWidth, 3 * kWidth))),
        out(register_module("out", nn::Linear(kWidth, kWidth))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        up(register_module("up", nn::Linear(kWidth, 4 * kWidth))),
        down(register_module("down", nn::Linear(4 * kWidth, kWidth))) {}

  torch::Tensor forward(torch::Tensor x) {
    const int64_t batch = x.size(0);
    const auto heads = [&](const torch::Tensor& t) {
      return t.view({batch, kLength, kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const std::vector<torch::Tensor> parts = qkv(norm1(x)).chunk(3, 2);
    const torch::Tensor attended =
        torch::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]),
                                            /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
    x = x + out(attended.transpose(1, 2).reshape({batch, kLength, kWidth}));
    return x + down(torch::gelu(up(norm2(x))));
  }

  nn::LayerNorm norm1;
  nn::Linear qkv;
  nn::Linear out;
  nn::LayerNorm norm2;
  nn::Linear up;
  nn::Linear down;
};
TORCH_MODULE(Layer);

struct GptNetImpl : nn::Module {
  GptNetImpl()
      : tokens(register_module("tokens", nn::Embedding(kVocabulary, kWidth))),
        positions(register_module("positions", nn::Embedding(kLength, kWidth))),
        layers(register_module("layers", nn::Sequential(Layer(), Layer()))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        head(register_module("head", nn::Linear(kWidth, kVocabulary))) {}

  torch::Tensor forward(const torch::Tensor& ids) {
    const torch::Tensor places = torch::arange(kLength, ids.options());
    return head(norm(layers->forward(tokens(ids) + positions(places))));
  }

  nn::Embedding tokens;
  nn::Embedding positions;
  nn::Sequential layers;
  nn::LayerNorm norm;
  nn::Linear head;
};
TORCH_MODULE(GptNet);

}  // namespace

std::vector<double> Gpt(const Options& options) {
  GptNet net;
  Initialize(*net, options);
  torch::optim::AdamW optimizer(net->parameters());
  Data data(options);
  LossLog log(options);
  for (int step = 0; step < options.steps; ++step) {
    Schedule(optimizer, 1e-3, step);
    optimizer.zero_grad();
    const torch::Tensor ids = data.Integers(kVocabulary, {8, kLength + 1});
    const torch::Tensor logits = net->forward(ids.slice(1, 0, kLength));
    torch::Tensor loss =
        nn::functional::cross_entropy(logits.view({-1, kVocabulary}), ids.slice(1, 1, kLength + 1).reshape({-1}));
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    log.Add(loss);
  }
  return log.Values();
}

}  // namespace programs
