// SPDX-License-Identifier: Apache-2.0
// LSTM and GRU against eager's unfused cells, forward and backward.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

constexpr int64_t kInput = 5, kHidden = 7, kBatch = 3, kSteps = 4;

// The result, and the gradients of the input and all weights.
std::vector<at::Tensor> RunLayer(bool lstm, at::Device device) {
  at::manual_seed(0);
  std::vector<at::Tensor> leaves;
  const auto leaf = [&](c10::IntArrayRef sizes) {
    leaves.push_back(at::randn(sizes).to(device).requires_grad_());
    return leaves.back();
  };
  const int64_t gates = lstm ? 4 : 3;
  const at::Tensor x = leaf({kSteps, kBatch, kInput}), h = leaf({1, kBatch, kHidden});
  const std::vector<at::Tensor> weights = {leaf({gates * kHidden, kInput}), leaf({gates * kHidden, kHidden}),
                                           leaf({gates * kHidden}), leaf({gates * kHidden})};
  at::Tensor out;
  if (lstm) {
    const auto [y, hy, cy] = at::lstm(x, {h, leaf({1, kBatch, kHidden})}, weights, true, 1, 0., true, false, false);
    out = y.square().sum() + hy.sum() + cy.square().sum();
  } else {
    const auto [y, hy] = at::gru(x, h, weights, true, 1, 0., true, false, false);
    out = y.square().sum() + hy.sum();
  }
  out.backward();
  std::vector<at::Tensor> results = {out.detach()};
  for (const at::Tensor& tensor : leaves) results.push_back(tensor.grad());
  return results;
}

class Cells : public testing::TestWithParam<bool> {
 protected:
  // Eager takes oneDNN's LSTM where it may, which is another sum in another order.
  void SetUp() override { at::globalContext().setUserEnabledMkldnn(false); }
  void TearDown() override { at::globalContext().setUserEnabledMkldnn(true); }
};

TEST_P(Cells, EqualEagersUnfusedCells) {
  const std::vector<at::Tensor> cpu = RunLayer(GetParam(), at::kCPU), lazy = RunLayer(GetParam(), Lazy());
  for (size_t i = 0; i < cpu.size(); ++i) {
    const double error = (lazy[i].cpu() - cpu[i]).abs().max().item<double>();
    EXPECT_LE(error, 4e-6 * std::max(1.0, cpu[i].abs().max().item<double>())) << "tensor " << i;
    EXPECT_EQ(lazy[i].sizes(), cpu[i].sizes());
  }
}

INSTANTIATE_TEST_SUITE_P(Kind, Cells, testing::Bool(), [](const auto& info) { return info.param ? "Lstm" : "Gru"; });

}  // namespace
}  // namespace torch_lazy::device
