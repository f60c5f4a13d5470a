// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/cells.h"

#include <utility>

namespace torch_lazy::device::shapes {
namespace {

// Gates of (batch, count * hidden) beside a state of (batch, hidden).
bool AreGates(const at::Tensor& gates, const at::Tensor& state, int64_t count) {
  return gates.dim() == 2 && state.dim() == 2 && gates.size(0) == state.size(0) &&
         gates.size(1) == count * state.size(1);
}

bool ReturnRows(ShapeCall& call, const at::Tensor& state, int64_t count) {
  return call.Return({state.size(0), count * state.size(1)}, state.scalar_type());
}

// A tensor of (length, batch, width) that lies so, also where the program calls it (batch, length, width).
bool ReturnSequence(ShapeCall& call, const at::Tensor& like, int64_t width, bool is_turned) {
  c10::DimVector sizes(like.sizes());
  sizes.back() = width;
  if (!is_turned) return call.Return(sizes, like.scalar_type());
  return call.Return(sizes, {width, sizes[0] * width, 1}, like.scalar_type());
}

struct NetArguments {  // of a call whose `mode` is the argument `at`
  NetArguments(const ShapeCall& call, size_t at)
      : hidden_size(call.Int(at + 1)),
        output_size(call.Int(at + 2) != 0 ? call.Int(at + 2) : hidden_size),
        num_directions(call.Bool(at + 7) ? 2 : 1),
        is_turned(call.Bool(at + 4) && call.Ints(at + 8).empty()),
        train(call.Bool(at + 6)) {}
  int64_t hidden_size, output_size, num_directions;
  bool is_turned, train;
};

}  // namespace

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace)
bool LstmCell(ShapeCall& call) {
  const at::Tensor& cx = call.Tensor(2);
  return AreGates(call.Tensor(0), cx, 4) && AreGates(call.Tensor(1), cx, 4) && call.ReturnLike(cx) &&
         call.ReturnLike(cx) && ReturnRows(call, cx, 4);
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
  return AreGates(call.Tensor(0), hx, 3) && AreGates(call.Tensor(1), hx, 3) && call.ReturnLike(hx) &&
         ReturnRows(call, hx, 5);
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

// (input, weights, hx, cx?, dropout_state?, mode, ...) -> (output, hy, cy, reserve). How much is reserved cuDNN alone
// knows.
bool CudnnRnn(ShapeCall& call) {
  const NetArguments net(call, 5);
  if (net.train) return false;
  const at::Tensor& input = call.Tensor(0);
  ReturnSequence(call, input, net.output_size * net.num_directions, net.is_turned);
  call.ReturnLike(call.Tensor(2));
  if (call.Has(3)) {
    call.ReturnLike(call.Tensor(3));
  } else {
    call.Return({0}, input.scalar_type());
  }
  return call.Return({0}, at::kByte);
}

// (input, weights, hx, cx?, output, grad_output?, grad_hy?, grad_cy?, dropout_state?, reserve, mode, ..., wanted)
// -> (grad_input, grad_hx, grad_cx, grad_weights)
bool CudnnRnnBackward(ShapeCall& call) {
  const NetArguments net(call, 10);
  const at::Tensor &input = call.Tensor(0), &output = call.Tensor(4);
  if (call.Has(5) && call.Tensor(5).sizes() != output.sizes()) return false;
  for (const auto& [gradient, state] : {std::pair(6, 2), {7, 3}}) {
    if (call.Has(gradient) && (!call.Has(state) || call.Tensor(gradient).sizes() != call.Tensor(state).sizes()))
      return false;
  }
  ReturnSequence(call, input, input.size(-1), net.is_turned);
  call.ReturnLike(call.Tensor(2));
  if (call.Has(3)) {
    call.ReturnLike(call.Tensor(3));
  } else {
    call.ReturnUndefined();
  }
  return call.Bools(19)[3] ? call.ReturnLike(call.Tensor(1)) : call.ReturnUndefined();
}

// (input, w_ih, w_hh, b_ih, b_hh, hx, cx, ..., train) -> (output, hy, cy, workspace). How large that is oneDNN alone
// knows.
bool OneDnnLayer(ShapeCall& call) {
  if (call.Bool(15)) return false;
  ReturnSequence(call, call.Tensor(0), call.Int(10), /*is_turned=*/false);
  return call.ReturnLike(call.Tensor(5)) && call.ReturnLike(call.Tensor(6)) && call.ReturnUndefined();
}

// (input, w_ih, w_hh, b_ih, b_hh, hx, cx, output, hy, cy, grad_output?, grad_hy?, grad_cy?, ...)
// -> (grad_input, grad_w_ih, grad_w_hh, grad_b_ih, grad_b_hh, grad_hx, grad_cx)
bool OneDnnLayerBackward(ShapeCall& call) {
  for (const auto& [gradient, result] : {std::pair(10, 7), {11, 8}, {12, 9}}) {
    if (call.Has(gradient) && call.Tensor(gradient).sizes() != call.Tensor(result).sizes()) return false;
  }
  if (!call.Has(10) && !call.Has(11) && !call.Has(12)) return false;
  const auto like = [&](size_t arg) { return call.Return(call.Tensor(arg).sizes(), at::kFloat); };
  const c10::DimVector bias = {call.Tensor(2).size(0)};
  return like(0) && like(1) && like(2) && call.Return(bias, at::kFloat) && call.Return(bias, at::kFloat) && like(5) &&
         like(6);
}

}  // namespace torch_lazy::device::shapes
