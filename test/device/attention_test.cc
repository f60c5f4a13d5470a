// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

std::vector<at::Tensor> Attend(at::Device device, bool causal, bool mask) {
  at::manual_seed(0);
  std::vector<at::Tensor> leaves;
  for (int i = 0; i < 3; ++i) leaves.push_back(at::randn({2, 4, 16, 8}).to(device).requires_grad_());
  const std::optional<at::Tensor> bias = mask ? std::make_optional(at::randn({16, 16}).to(device)) : std::nullopt;
  const at::Tensor y = at::scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], bias, 0., causal);
  y.square().sum().backward();
  return {y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST(Attention, TakesTheFormThatTheCpuTakes) {
  const at::Tensor x = at::randn({2, 4, 16, 8});
  EXPECT_EQ(at::_fused_sdp_choice(ToLazy(x), ToLazy(x), ToLazy(x)), at::_fused_sdp_choice(x, x, x));
}

TEST(Attention, IsEagersForwardAndBackward) {
  for (const auto& [causal, mask] : {std::pair(false, false), {true, false}, {false, true}}) {
    const std::vector<at::Tensor> cpu = Attend(at::kCPU, causal, mask), lazy = Attend(Lazy(), causal, mask);
    for (size_t i = 0; i < cpu.size(); ++i) ExpectSame(lazy[i], cpu[i]);
  }
}

}  // namespace
}  // namespace torch_lazy::device
