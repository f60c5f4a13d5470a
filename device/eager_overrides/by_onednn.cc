// SPDX-License-Identifier: Apache-2.0
// LSTMs on the CPU: oneDNN's kernel for a layer's whole sequence, where eager takes it.
#include <vector>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "device/eager_overrides/boxed.h"
#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/recurrent_nets.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "lazy/eager/on_host.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;
using Layer = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // output, hy, cy, what backward needs

bool Supports(const char* op) {
  const auto handle = c10::Dispatcher::singleton().findSchema({op, ""});
  return handle.has_value() && handle->typed<bool()>().call();
}

bool TakesType(at::ScalarType dtype) {
  static const bool bfloat16 = Supports("mkldnn::_is_mkldnn_bf16_supported"),
                    half = Supports("mkldnn::_is_mkldnn_fp16_supported");
  return dtype == at::kFloat || (dtype == at::kBFloat16 && bfloat16) ||
         (dtype == at::kHalf && half && !at::GradMode::is_enabled());
}

// Autocast hands the layer what eager's check of types has not seen, and eager raises where oneDNN refuses that.
at::ScalarType TypeOfLayer(const Tensor& input) {
  const bool lowers = at::autocast::is_autocast_enabled(at::kPrivateUse1) && input.scalar_type() != at::kDouble;
  return lowers ? at::autocast::get_autocast_dtype(at::kPrivateUse1) : input.scalar_type();
}

bool IsSymbolic(const Tensor& tensor) { return tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides(); }

bool TakesOneDnn(const RecurrentNet& net) {
  const bool is_plain = net.mode == RnnMode::kLstm && !net.batch_sizes.has_value();
  return is_plain && lazy::IsOnHost() && at::globalContext().userEnabledMkldnn() && TakesType(TypeOfLayer(net.input)) &&
         !IsSymbolic(net.input) && !IsSymbolic(net.hx) && net.input.numel() != 0 && net.hx.size(2) == net.cx.size(2);
}

// Whether a gradient is recorded decides what the kernel does. It runs when nobody knows any more, so that is said by
// `train`, which the kernel does not read.
Layer RnnLayer(const Tensor& input, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh,
               const Tensor& hx, const Tensor& cx, bool reverse, at::IntArrayRef batch_sizes, int64_t mode,
               int64_t hidden_size, int64_t num_layers, bool has_biases, bool bidirectional, bool batch_first, bool) {
  return CallBoxed<at::_ops::mkldnn_rnn_layer>(input, w_ih, w_hh, b_ih, b_hh, hx, cx, reverse, batch_sizes, mode,
                                               hidden_size, num_layers, has_biases, bidirectional, batch_first,
                                               c10::GradMode::is_enabled());
}

Layer RunLayer(Tensor input, Tensor w_ih, Tensor w_hh, Tensor b_ih, Tensor b_hh, Tensor hx, Tensor cx, bool reverse,
               Ints batch_sizes, int64_t mode, int64_t hidden_size, int64_t num_layers, bool has_biases,
               bool bidirectional, bool batch_first, bool train) {
  const c10::AutoGradMode grad_mode(train);
  return at::mkldnn_rnn_layer(input, w_ih, w_hh, b_ih, b_hh, hx, cx, reverse, batch_sizes, mode, hidden_size,
                              num_layers, has_biases, bidirectional, batch_first, train);
}

}  // namespace

void RunOneDnnLayer(torch::jit::Stack* stack) { Runner<RunLayer>(stack); }

std::optional<RecurrentResult> ByOneDnn(const RecurrentNet& net) {
  if (!TakesOneDnn(net)) return std::nullopt;
  const size_t num_directions = net.bidirectional ? 2 : 1, per_layer = net.has_biases ? 4 : 2;
  if (net.weights.size() != per_layer * num_directions * static_cast<size_t>(net.num_layers)) return std::nullopt;
  const Tensor hx = net.hx.contiguous(), cx = net.cx.contiguous();
  Tensor input = (net.batch_first ? net.input.transpose(0, 1) : net.input).contiguous();
  std::vector<Tensor> hy, cy;
  for (int64_t layer = 0; layer < net.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (size_t direction = 0; direction < num_directions; ++direction) {
      const auto index = static_cast<int64_t>(hy.size());
      const at::TensorList weights = net.weights.slice(hy.size() * per_layer, per_layer);
      const auto bias = [&](size_t k) { return net.has_biases ? weights[2 + k] : at::zeros_like(weights[k]); };
      auto [output, hidden, cell, workspace] = at::mkldnn_rnn_layer(
          input, weights[0], weights[1], bias(0), bias(1), hx[index], cx[index], /*reverse=*/direction > 0,
          /*batch_sizes=*/{}, static_cast<int64_t>(net.mode), hx.size(2), net.num_layers, net.has_biases,
          net.bidirectional, net.batch_first, net.train);
      outputs.push_back(std::move(output));
      hy.push_back(std::move(hidden));
      cy.push_back(std::move(cell));
    }
    input = num_directions == 1 ? outputs[0] : at::cat(outputs, -1);
    const bool is_last = layer == net.num_layers - 1;
    if (net.dropout != 0 && net.train && !is_last) input = at::dropout(input, net.dropout, /*train=*/true);
  }
  // New tensors, of one layer too: a program may detach its states in place, which views refuse.
  return RecurrentResult(net.batch_first ? input.transpose(0, 1) : input, at::stack(hy, 0), at::stack(cy, 0));
}

void RegisterOneDnnRnn(torch::Library& aten) { aten.impl("mkldnn_rnn_layer", TORCH_FN(RnnLayer)); }

}  // namespace torch_lazy::device
