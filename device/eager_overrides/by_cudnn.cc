// SPDX-License-Identifier: Apache-2.0
// When eager's recurrent nets are cuDNN's on CUDA, and how.
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/cudnn_is_acceptable_native.h>

#include "device/eager_overrides/like_on_cuda.h"
#include "device/eager_overrides/recurrent_nets.h"
#include "device/eager_overrides/rnn_dropout_state.h"
#include "lazy/calls/device_of_call.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::device {
namespace {

bool CudnnTakes(const at::Tensor& input) {
  if (lazy::IsOnHost() || !at::native::cudnn_is_acceptable(LikeOnCuda(input))) return false;
  switch (input.scalar_type()) {
    case at::kDouble:
    case at::kFloat:
    case at::kHalf:
      return true;
    case at::kBFloat16:
      return at::detail::getCUDAHooks().supportsBFloat16RNNWithCuDNN();
    default:
      return false;
  }
}

at::IntArrayRef BatchSizesOf(const RecurrentNet& net) {
  if (!net.batch_sizes.has_value()) return {};
  const at::Tensor& sizes = *net.batch_sizes;
  TORCH_CHECK(sizes.dim() == 1, "batch_sizes tensor should be 1D");
  TORCH_CHECK(sizes.device().is_cpu(), "batch_sizes tensor should be on CPU, but got ", sizes.device());
  return {sizes.const_data_ptr<int64_t>(), static_cast<size_t>(sizes.size(0))};
}

}  // namespace

std::optional<RecurrentResult> ByCudnn(const RecurrentNet& net) {
  const lazy::OnDevice on(lazy::DeviceOf(net.input));
  if (!CudnnTakes(net.input)) return std::nullopt;
  std::optional<at::Tensor> dropout_state;
  if (net.train && net.dropout > 0) {
    dropout_state = RnnDropoutState(net.dropout);
    if (!dropout_state->defined()) return std::nullopt;
  }
  c10::SymInt hidden_size = net.hx.sym_size(2), proj_size = 0;
  if (net.cx.defined() && net.cx.sym_size(2) != net.hx.sym_size(2)) {
    proj_size = hidden_size;
    hidden_size = net.cx.sym_size(2);
  }
  const int64_t per_layer = (net.has_biases ? 4 : 2) + (proj_size != 0 ? 1 : 0);
  const std::optional<at::Tensor> cx = net.cx.defined() ? std::optional(net.cx) : std::nullopt;
  auto [output, hy, cy, reserve, weights] = at::_cudnn_rnn_symint(
      net.input, net.weights, per_layer, /*weight_buf=*/std::nullopt, net.hx, cx, static_cast<int64_t>(net.mode),
      hidden_size, proj_size, net.num_layers, net.batch_first, net.dropout, net.train, net.bidirectional,
      c10::fromIntArrayRefSlow(BatchSizesOf(net)), dropout_state);
  return RecurrentResult(std::move(output), std::move(hy), std::move(cy));
}

}  // namespace torch_lazy::device
