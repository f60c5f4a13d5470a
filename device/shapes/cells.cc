// SPDX-License-Identifier: Apache-2.0
// The cells of LSTM and GRU, as device/kernels/recurrent.cc computes them.
#include "device/shapes/rules.h"

namespace torch_lazy::device {
namespace {

using lazy::ShapeCall;

// Gates of (batch, count * hidden) beside a state of (batch, hidden).
bool AreGates(const at::Tensor& gates, const at::Tensor& state, int64_t count) {
  return gates.dim() == 2 && state.dim() == 2 && gates.size(0) == state.size(0) && gates.size(1) == count * state.size(1);
}

bool ReturnRows(ShapeCall& call, const at::Tensor& state, int64_t count) {
  return call.Return({state.size(0), count * state.size(1)}, state.scalar_type());
}

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace)
bool LstmCell(ShapeCall& call) {
  const at::Tensor& cx = call.Tensor(2);
  return AreGates(call.Tensor(0), cx, 4) && AreGates(call.Tensor(1), cx, 4) && call.ReturnLike(cx) && call.ReturnLike(cx) &&
         ReturnRows(call, cx, 4);
}

// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx, grad_bias)
bool LstmCellBackward(ShapeCall& call) {
  const at::Tensor& cx = call.Tensor(2);
  if (!AreGates(call.Tensor(4), cx, 4) || (!call.Has(0) && !call.Has(1))) return false;
  for (const size_t state : {0, 1, 3}) {
    if (call.Has(state) && call.Tensor(state).sizes() != cx.sizes()) return false;
  }
  ReturnRows(call, cx, 4);
  call.ReturnLike(cx);
  return call.Bool(5) ? call.Return({4 * cx.size(1)}, cx.scalar_type()) : call.ReturnUndefined();
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace)
bool GruCell(ShapeCall& call) {
  const at::Tensor& hx = call.Tensor(2);
  return AreGates(call.Tensor(0), hx, 3) && AreGates(call.Tensor(1), hx, 3) && call.ReturnLike(hx) && ReturnRows(call, hx, 5);
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
bool GruCellBackward(ShapeCall& call) {
  const at::Tensor& grad = call.Tensor(0);
  if (!AreGates(call.Tensor(1), grad, 5)) return false;
  ReturnRows(call, grad, 3);
  ReturnRows(call, grad, 3);
  call.ReturnLike(grad);
  if (!call.Bool(2)) return call.ReturnUndefined() && call.ReturnUndefined();
  const c10::DimVector bias = {3 * grad.size(1)};
  return call.Return(bias, grad.scalar_type()) && call.Return(bias, grad.scalar_type());
}

constexpr ShapeRow kRows[] = {
    {"aten::_thnn_fused_gru_cell", GruCell},
    {"aten::_thnn_fused_gru_cell_backward", GruCellBackward},
    {"aten::_thnn_fused_lstm_cell", LstmCell},
    {"aten::_thnn_fused_lstm_cell_backward_impl", LstmCellBackward},
};

}  // namespace

ShapeRows CellShapes() { return kRows; }

}  // namespace torch_lazy::device
