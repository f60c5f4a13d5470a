// SPDX-License-Identifier: Apache-2.0
// The cells of LSTM and GRU, which PyTorch fuses on devices like ours and which have no kernel on the CPU.
//
// What is computed and saved is what ATen's CUDA kernels do. In which order follows eager's unfused cells on the CPU
// and what autograd makes of them, so that the digits are the same.
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/zeros_like.h>

#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "device/eager_overrides/whole_or_parts.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

bool Given(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }
at::Tensor WithBias(const at::Tensor& gates, const OptionalTensor& bias) { return Given(bias) ? gates + *bias : gates; }
at::Tensor SumOfRows(const at::Tensor& gates, bool wanted) { return wanted ? gates.sum(0) : at::Tensor(); }

// (hy, cy, workspace): the workspace holds the four activated gates.
std::tuple<at::Tensor, at::Tensor, at::Tensor> LstmCell(at::Tensor input_gates, at::Tensor hidden_gates, at::Tensor cx,
                                                        OptionalTensor input_bias, OptionalTensor hidden_bias) {
  const std::vector<at::Tensor> gates =
      (WithBias(hidden_gates, hidden_bias) + WithBias(input_gates, input_bias)).chunk(4, 1);
  const at::Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(),
                   out = gates[3].sigmoid();
  const at::Tensor cy = (forget * cx).add_(in * cell);
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

// (grad_gates, grad_cx, grad_bias)
std::tuple<at::Tensor, at::Tensor, at::Tensor> LstmCellBackward(OptionalTensor grad_hy, OptionalTensor grad_cy,
                                                                at::Tensor cx, at::Tensor cy, at::Tensor workspace,
                                                                bool has_bias) {
  if (!Given(grad_hy) && !Given(grad_cy)) return {};
  const std::vector<at::Tensor> gates = workspace.chunk(4, 1);
  const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  at::Tensor grad_out = at::zeros_like(out), grad_cell_state;
  if (Given(grad_hy)) {
    const at::Tensor tanh_cy = cy.tanh();
    grad_out = *grad_hy * tanh_cy;
    grad_cell_state = at::tanh_backward(*grad_hy * out, tanh_cy);
    if (Given(grad_cy)) grad_cell_state = *grad_cy + grad_cell_state;
  } else {
    grad_cell_state = *grad_cy;
  }
  const at::Tensor grad_gates =
      at::cat({at::sigmoid_backward(grad_cell_state * cell, in), at::sigmoid_backward(grad_cell_state * cx, forget),
               at::tanh_backward(grad_cell_state * in, cell), at::sigmoid_backward(grad_out, out)},
              1);
  return {grad_gates, grad_cell_state * forget, SumOfRows(grad_gates, has_bias)};
}

// (hy, workspace): the workspace holds reset, update and new gate, hx, and the hidden part of the new gate.
std::tuple<at::Tensor, at::Tensor> GruCell(at::Tensor input_gates, at::Tensor hidden_gates, at::Tensor hx,
                                           OptionalTensor input_bias, OptionalTensor hidden_bias) {
  const std::vector<at::Tensor> input = WithBias(input_gates, input_bias).chunk(3, 1);
  const std::vector<at::Tensor> hidden = WithBias(hidden_gates, hidden_bias).chunk(3, 1);
  const at::Tensor reset = (hidden[0] + input[0]).sigmoid();
  const at::Tensor update = (hidden[1] + input[1]).sigmoid();
  const at::Tensor fresh = (input[2] + hidden[2] * reset).tanh();
  return {(hx - fresh).mul_(update).add_(fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

// (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> GruCellBackward(at::Tensor grad_hy,
                                                                                       at::Tensor workspace,
                                                                                       bool has_bias) {
  const std::vector<at::Tensor> saved = workspace.chunk(5, 1);
  const at::Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2], &hx = saved[3], &hidden_new = saved[4];
  const at::Tensor grad_hx = grad_hy * update;
  const at::Tensor grad_new = at::tanh_backward(grad_hy - grad_hx, fresh);
  const at::Tensor grad_update = at::sigmoid_backward(grad_hy * (hx - fresh), update);
  const at::Tensor grad_reset = at::sigmoid_backward(grad_new * hidden_new, reset);
  const at::Tensor grad_input_gates = at::cat({grad_reset, grad_update, grad_new}, 1);
  const at::Tensor grad_hidden_gates = at::cat({grad_reset, grad_update, grad_new * reset}, 1);
  return {grad_input_gates, grad_hidden_gates, grad_hx, SumOfRows(grad_input_gates, has_bias),
          SumOfRows(grad_hidden_gates, has_bias)};
}

}  // namespace

void RunLstmCell(torch::jit::Stack* stack) { Runner<LstmCell>(stack); }
void RunLstmCellBackward(torch::jit::Stack* stack) { Runner<LstmCellBackward>(stack); }
void RunGruCell(torch::jit::Stack* stack) { Runner<GruCell>(stack); }
void RunGruCellBackward(torch::jit::Stack* stack) { Runner<GruCellBackward>(stack); }

void RegisterRecurrentAutograd(torch::Library& aten) {
  RegisterWholeOrParts(aten, "aten::_thnn_fused_lstm_cell", &Runner<LstmCell>);
  RegisterWholeOrParts(aten, "aten::_thnn_fused_gru_cell", &Runner<GruCell>);
}

}  // namespace torch_lazy::device
