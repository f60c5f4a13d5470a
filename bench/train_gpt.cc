// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <random>

#include "bench/train_steps.h"

namespace bench {
namespace {

namespace nn = torch::nn;

constexpr int64_t kLength = 128, kBatch = 8;
constexpr int kInTurn = 16, kShuffled = 96;  // lengths

struct Sizes {
  int64_t vocabulary, width, heads, layers;
};
constexpr Sizes kOfGpt = {1024, 256, 8, 4},
                kOfGptShuffled = {64, 128, 4, 2};  // as in workloads/gpt.py, gpt_shuffled.py

nn::LayerNorm Norm(const Sizes& sizes) { return nn::LayerNorm(nn::LayerNormOptions({sizes.width})); }

struct LayerImpl : nn::Module {
  explicit LayerImpl(const Sizes& sizes) : heads_(sizes.heads) {
    norm1 = register_module("norm1", Norm(sizes));
    norm2 = register_module("norm2", Norm(sizes));
    qkv = register_module("qkv", nn::Linear(sizes.width, 3 * sizes.width));
    out = register_module("out", nn::Linear(sizes.width, sizes.width));
    up = register_module("up", nn::Linear(sizes.width, 4 * sizes.width));
    down = register_module("down", nn::Linear(4 * sizes.width, sizes.width));
  }

  torch::Tensor forward(torch::Tensor x) {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const auto heads = [&](const torch::Tensor& t) {
      return t.view({batch, length, heads_, width / heads_}).transpose(1, 2);
    };
    const std::vector<torch::Tensor> parts = qkv(norm1(x)).chunk(3, 2);
    const torch::Tensor attended =
        torch::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), /*attn_mask=*/{},
                                            /*dropout_p=*/0.0, /*is_causal=*/true);
    x = x + out(attended.transpose(1, 2).reshape({batch, length, width}));
    return x + down(torch::gelu(up(norm2(x))));
  }

  const int64_t heads_;
  nn::LayerNorm norm1 = nullptr, norm2 = nullptr;
  nn::Linear qkv = nullptr, out = nullptr, up = nullptr, down = nullptr;
};
TORCH_MODULE(Layer);

struct Net : nn::Module {
  nn::Embedding tokens = nullptr, positions = nullptr;
  nn::Sequential layers = register_module("layers", nn::Sequential());
  nn::LayerNorm norm = nullptr;
  nn::Linear head = nullptr;

  explicit Net(const Sizes& sizes) {
    tokens = register_module("tokens", nn::Embedding(sizes.vocabulary, sizes.width));
    positions = register_module("positions", nn::Embedding(kLength, sizes.width));
    norm = register_module("norm", Norm(sizes));
    head = register_module("head", nn::Linear(sizes.width, sizes.vocabulary));
    for (int64_t i = 0; i < sizes.layers; ++i) layers->push_back(Layer(sizes));
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    const torch::Tensor places = torch::arange(ids.size(1), ids.options());
    return head(norm(layers->forward(tokens(ids) + positions(places))));
  }
};

}  // namespace

Step Gpt(const c10::Device& device, Lengths lengths) {
  const Sizes& sizes = lengths == Lengths::kShuffled ? kOfGptShuffled : kOfGpt;
  auto net = std::make_shared<Net>(sizes);
  net->to(device);
  std::vector<torch::Tensor> batches;
  for (int i = 0; i < (lengths == Lengths::kShuffled ? kShuffled : kInTurn); ++i) {
    const int64_t length = lengths == Lengths::kOne      ? kLength
                           : lengths == Lengths::kInTurn ? kLength - 4 * ((7 * i) % kInTurn)
                                                         : kLength - i;
    batches.push_back(torch::randint(sizes.vocabulary, {kBatch, length + 1}, torch::kLong));
  }
  std::mt19937 random;
  if (lengths == Lengths::kShuffled) std::ranges::shuffle(batches, random);
  auto optimizer = std::make_shared<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(1e-4));
  return [=](int index) mutable {
    const size_t which = static_cast<size_t>(index) % batches.size();
    const torch::Tensor ids = batches[which].to(device);
    if (lengths == Lengths::kShuffled && which + 1 == batches.size()) std::ranges::shuffle(batches, random);
    optimizer->zero_grad();
    const torch::Tensor logits = net->forward(ids.slice(1, 0, -1));
    torch::Tensor loss = nn::functional::cross_entropy(logits.flatten(0, 1), ids.slice(1, 1).reshape({-1}));
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
}

}  // namespace bench
