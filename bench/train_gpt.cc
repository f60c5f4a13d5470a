// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include "bench/train_steps.h"

namespace bench {
namespace {

namespace nn = torch::nn;

constexpr int64_t kVocabulary = 1024, kLength = 128, kWidth = 256, kHeads = 8, kLayers = 4, kBatch = 8;
constexpr int kLengths = 16, kBatches = 16;

nn::LayerNorm Norm() { return nn::LayerNorm(nn::LayerNormOptions({kWidth})); }

struct LayerImpl : nn::Module {
  nn::LayerNorm norm1 = register_module("norm1", Norm()), norm2 = register_module("norm2", Norm());
  nn::Linear qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth)),
             out = register_module("out", nn::Linear(kWidth, kWidth));
  nn::Linear up = register_module("up", nn::Linear(kWidth, 4 * kWidth)),
             down = register_module("down", nn::Linear(4 * kWidth, kWidth));

  torch::Tensor forward(torch::Tensor x) {
    const int64_t batch = x.size(0), length = x.size(1);
    const auto heads = [&](const torch::Tensor& t) {
      return t.view({batch, length, kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const std::vector<torch::Tensor> parts = qkv(norm1(x)).chunk(3, 2);
    const torch::Tensor attended =
        torch::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), /*attn_mask=*/{},
                                            /*dropout_p=*/0.0, /*is_causal=*/true);
    x = x + out(attended.transpose(1, 2).reshape({batch, length, kWidth}));
    return x + down(torch::gelu(up(norm2(x))));
  }
};
TORCH_MODULE(Layer);

struct Net : nn::Module {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(kVocabulary, kWidth));
  nn::Embedding positions = register_module("positions", nn::Embedding(kLength, kWidth));
  nn::Sequential layers = register_module("layers", nn::Sequential());
  nn::LayerNorm norm = register_module("norm", Norm());
  nn::Linear head = register_module("head", nn::Linear(kWidth, kVocabulary));

  Net() {
    for (int i = 0; i < kLayers; ++i) layers->push_back(Layer());
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    const torch::Tensor places = torch::arange(ids.size(1), ids.options());
    return head(norm(layers->forward(tokens(ids) + positions(places))));
  }
};

}  // namespace

Step Gpt(const c10::Device& device, bool varies) {
  auto net = std::make_shared<Net>();
  net->to(device);
  std::vector<torch::Tensor> batches;
  for (int i = 0; i < kBatches; ++i) {
    const int64_t length = varies ? kLength - 4 * ((7 * i) % kLengths) : kLength;
    batches.push_back(torch::randint(kVocabulary, {kBatch, length + 1}, torch::kLong));
  }
  auto optimizer = std::make_shared<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(1e-4));
  return [=](int index) {
    const torch::Tensor ids = batches[index % batches.size()].to(device);
    optimizer->zero_grad();
    const torch::Tensor logits = net->forward(ids.slice(1, 0, -1));
    torch::Tensor loss = nn::functional::cross_entropy(logits.flatten(0, 1), ids.slice(1, 1).reshape({-1}));
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
}

}  // namespace bench
