// SPDX-License-Identifier: Apache-2.0
// The cells of LSTM and GRU, forward and backward: what device/eager_overrides/recurrent.cc says by operators, in its
// order.
#include <vector>

#include "device/eager_overrides/our_arguments.h"
#include "device/eager_overrides/runners.h"
#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/cells.h"
#include "ir/decompose/activation.h"

namespace torch_lazy::device {
namespace {

using ir::decompose::SigmoidBackward;
using ir::decompose::TanhBackward;

// On the CPU eager rounds 16-bit floats at each operator; CUDA's cells round at their end.
bool IsLowered(lazy::Lowering& call) {
  return InClass(kFloats, call.ComputeType()) && (call.IsForCuda() || !ir::IsHalf(call.Result(0).dtype));
}

Tensor Read(lazy::Lowering& call, int arg) { return {call.b(), call.b().Cast(call.Tensor(arg), call.ComputeType())}; }

Tensor ReadGates(lazy::Lowering& call, int gates, int bias) {
  const Tensor x = Read(call, gates);
  return call.IsNone(bias) ? x : x + Read(call, bias);
}

// Part `k` of columns that are several times `width`.
Tensor Part(lazy::Lowering& call, const Tensor& x, int64_t k, int64_t width) {
  const auto extent = [&](int64_t number) { return number == 0 ? ir::Extent::Constant(0) : call.ExtentOf(number); };
  return {call.b(), call.b().Slice(x, {extent(0), extent(k * width)}, {x.dims()[0], extent(width)}, {1, 1})};
}

Tensor Joined(lazy::Lowering& call, const std::vector<ir::Value>& parts, int64_t width) {
  return {call.b(), call.b().Concat(parts, 1, call.ExtentOf(static_cast<int64_t>(parts.size()) * width))};
}

Tensor Sigmoid(const Tensor& x) { return {x.builder(), ir::decompose::Sigmoid(x.builder(), x)}; }
Tensor BackThroughSigmoid(const Tensor& grad, const Tensor& y) {
  return {y.builder(), SigmoidBackward(y.builder(), grad, y)};
}
Tensor BackThroughTanh(const Tensor& grad, const Tensor& y) {
  return {y.builder(), TanhBackward(y.builder(), grad, y)};
}

void ReturnSumOfRows(lazy::Lowering& call, int result, const Tensor& x) {
  if (call.Wanted(result)) call.Return(result, Sum(x, {0}, /*keepdim=*/false));
}

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace)
bool LstmCell(lazy::Lowering& call) {
  if (!IsLowered(call)) return false;
  const int64_t width = call.Sizes(2)[1];
  const Tensor gates = ReadGates(call, 1, 4) + ReadGates(call, 0, 3), cx = Read(call, 2);
  const Tensor in = Sigmoid(Part(call, gates, 0, width)), forget = Sigmoid(Part(call, gates, 1, width)),
               cell = Tanh(Part(call, gates, 2, width)), out = Sigmoid(Part(call, gates, 3, width));
  const Tensor cy = forget * cx + in * cell;
  call.Return(0, out * Tanh(cy));
  call.Return(1, cy);
  call.Return(2, Joined(call, {in, forget, cell, out}, width));
  return true;
}

// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx, grad_bias)
bool LstmCellBackward(lazy::Lowering& call) {
  if (!IsLowered(call) || (call.IsNone(0) && call.IsNone(1))) return false;
  const int64_t width = call.Sizes(2)[1];
  const Tensor workspace = Read(call, 4), cx = Read(call, 2);
  const Tensor in = Part(call, workspace, 0, width), forget = Part(call, workspace, 1, width),
               cell = Part(call, workspace, 2, width), out = Part(call, workspace, 3, width);
  Tensor grad_out = {call.b(), call.b().Like(out, 0)}, grad_cell_state = grad_out;
  if (call.IsNone(0)) {
    grad_cell_state = Read(call, 1);
  } else {
    const Tensor grad_hy = Read(call, 0), tanh_cy = Tanh(Read(call, 3));
    grad_out = grad_hy * tanh_cy;
    grad_cell_state = BackThroughTanh(grad_hy * out, tanh_cy);
    if (!call.IsNone(1)) grad_cell_state = Read(call, 1) + grad_cell_state;
  }
  const Tensor grad_gates =
      Joined(call,
             {BackThroughSigmoid(grad_cell_state * cell, in), BackThroughSigmoid(grad_cell_state * cx, forget),
              BackThroughTanh(grad_cell_state * in, cell), BackThroughSigmoid(grad_out, out)},
             width);
  call.Return(0, grad_gates);
  call.Return(1, grad_cell_state * forget);
  ReturnSumOfRows(call, 2, grad_gates);
  return true;
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace)
bool GruCell(lazy::Lowering& call) {
  if (!IsLowered(call)) return false;
  const int64_t width = call.Sizes(2)[1];
  const Tensor input = ReadGates(call, 0, 3), hidden = ReadGates(call, 1, 4), hx = Read(call, 2);
  const Tensor reset = Sigmoid(Part(call, hidden, 0, width) + Part(call, input, 0, width)),
               update = Sigmoid(Part(call, hidden, 1, width) + Part(call, input, 1, width)),
               hidden_new = Part(call, hidden, 2, width),
               fresh = Tanh(Part(call, input, 2, width) + hidden_new * reset);
  call.Return(0, (hx - fresh) * update + fresh);
  call.Return(1, Joined(call, {reset, update, fresh, hx, hidden_new}, width));
  return true;
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
bool GruCellBackward(lazy::Lowering& call) {
  if (!IsLowered(call)) return false;
  const int64_t width = call.Sizes(0)[1];
  const Tensor grad_hy = Read(call, 0), workspace = Read(call, 1);
  const Tensor reset = Part(call, workspace, 0, width), update = Part(call, workspace, 1, width),
               fresh = Part(call, workspace, 2, width), hx = Part(call, workspace, 3, width),
               hidden_new = Part(call, workspace, 4, width);
  const Tensor grad_hx = grad_hy * update, grad_new = BackThroughTanh(grad_hy - grad_hx, fresh),
               grad_update = BackThroughSigmoid(grad_hy * (hx - fresh), update),
               grad_reset = BackThroughSigmoid(grad_new * hidden_new, reset);
  const Tensor grad_input = Joined(call, {grad_reset, grad_update, grad_new}, width),
               grad_hidden = Joined(call, {grad_reset, grad_update, grad_new * reset}, width);
  call.Return(0, grad_input);
  call.Return(1, grad_hidden);
  call.Return(2, grad_hx);
  ReturnSumOfRows(call, 3, grad_input);
  ReturnSumOfRows(call, 4, grad_hidden);
  return true;
}

constexpr lazy::Row kCellRows[] = {
    {"aten::_thnn_fused_gru_cell", GruCell, kWhole | kTakesAllValues, shapes::GruCell, RunGruCell},
    {"aten::_thnn_fused_gru_cell_backward", GruCellBackward, kWhole | kTakesAllValues, shapes::GruCellBackward,
     RunGruCellBackward},
    {"aten::_thnn_fused_lstm_cell", LstmCell, kWhole | kTakesAllValues, shapes::LstmCell, RunLstmCell},
    {"aten::_thnn_fused_lstm_cell_backward_impl", LstmCellBackward, kWhole | kTakesAllValues, shapes::LstmCellBackward,
     RunLstmCellBackward},
    {.name = "aten::mkldnn_rnn_layer",
     .flags = kTakesAllValues,
     .shape = shapes::OneDnnLayer,
     .runner = RunOneDnnLayer},
    {.name = "aten::mkldnn_rnn_layer_backward", .flags = kTakesAllValues, .shape = shapes::OneDnnLayerBackward},
    {.name = "torch_lazy::cudnn_rnn", .shape = shapes::CudnnRnn, .runner = RunCudnnRnn, .check = CheckCudnnRnn},
    {.name = "torch_lazy::cudnn_rnn_backward",
     .shape = shapes::CudnnRnnBackward,
     .runner = RunCudnnRnnBackward,
     .check = CheckCudnnRnnBackward},
};

}  // namespace

Rows CellRows() { return kCellRows; }

}  // namespace torch_lazy::device
