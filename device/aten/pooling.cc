// SPDX-License-Identifier: Apache-2.0
// Pooling with windows: each element of a window is a slice of the padded input with the pool's stride.
#include <limits>

#include "device/aten/formula.h"
#include "device/aten/joins.h"
#include "device/aten/rows.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

constexpr int64_t kMostInWindow = 25;  // elements; ATen's loop is better at more

// One spatial dim of a pool.
struct Window {
  int dim;  // of the input
  int64_t kernel, stride, padding, dilation;
  int64_t input;  // elements
};

int64_t Item(const ir::Ints& list, size_t k, int64_t otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : k];
}

// The element `at` of each window.
ir::Value ElementOfWindows(lazy::Lowering& call, ir::Value padded, const ir::Dims& dims, const Window* windows, const int64_t* at) {
  ir::Dims starts(dims.size(), ir::Extent::Constant(0));
  ir::Ints steps(dims.size(), 1);
  for (int k = 0; k < 2; ++k) {
    const size_t dim = static_cast<size_t>(windows[k].dim);
    starts[dim] = call.ExtentOf(at[k] * windows[k].dilation);
    steps[dim] = windows[k].stride;
  }
  return call.b().Slice(padded, starts, dims, steps);
}

// Its index in the rows and columns of the input, as ATen counts them; the first is moved into the input.
ir::Value IndexOfElement(lazy::Lowering& call, const ir::Dims& dims, const Window* windows, const int64_t* at) {
  ir::Builder& b = call.b();
  const ir::Type type{DType::kI64, dims};
  ir::Value index = b.Full(b.Const(DType::kI64, 0), dims);
  for (int k = 0; k < 2; ++k) {
    const auto number = [&](int64_t value) { return b.Full(b.Const(DType::kI64, value), dims); };
    const ir::Value extent = b.Full(b.ExtentOf(call.ExtentOf(windows[k].input)), dims);
    const ir::Value moved = b.Mul(b.Iota(type, windows[k].dim), number(windows[k].stride));
    ir::Value place = b.Add(moved, number(at[k] * windows[k].dilation - windows[k].padding));
    if (at[0] == 0 && at[1] == 0) place = b.Binary(Op::kMax, place, number(0));
    index = b.Add(b.Mul(index, extent), place);
  }
  return index;
}

struct Candidate {
  ir::Value value, index;
};

// Of a window's elements in order: a later one wins if it is greater, or NaN. In pairs, which wait less for each other.
Candidate Best(ir::Builder& b, absl::Span<const Candidate> candidates) {
  if (candidates.size() == 1) return candidates[0];
  const size_t half = (candidates.size() + 1) / 2;
  const Candidate first = Best(b, candidates.first(half)), second = Best(b, candidates.subspan(half));
  const DType dtype = b.dtype(first.value), computed = ir::IsHalf(dtype) ? DType::kF32 : dtype;
  const ir::Value former = b.Cast(first.value, computed), later = b.Cast(second.value, computed);
  const ir::Value is_greater = b.Binary(Op::kGt, later, former), is_nan = b.Binary(Op::kNe, later, later);
  return {b.Cast(b.Binary(Op::kMax, later, former), dtype),
          b.Where(is_nan, second.index, b.Where(is_greater, second.index, first.index))};
}

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode). An element of the padding never wins.
bool MaxPool2d(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  ir::Value x = call.Tensor(0);
  const ir::Ints kernel = call.IntList(1), stride = call.IntList(2), padding = call.IntList(3), dilation = call.IntList(4);
  if (!ir::IsFloat(b.dtype(x)) || call.Bool(5)) return false;
  const ir::Dims dims = call.Result(0).dims;
  const ir::Ints sizes = call.Sizes(0);
  Window windows[2];
  for (size_t k = 0; k < 2; ++k) {
    Window& w = windows[k];
    w.dim = b.rank(x) - 2 + static_cast<int>(k);
    w.kernel = Item(kernel, k, 1);
    w.stride = Item(stride, k, w.kernel);
    w.padding = Item(padding, k, 0);
    w.dilation = Item(dilation, k, 1);
    w.input = sizes[static_cast<size_t>(w.dim)];
  }
  if (windows[0].kernel * windows[1].kernel > kMostInWindow) return false;
  for (const Window& w : windows) {
    if (w.padding > 0 && w.dilation > 1) return false;
  }
  const ir::Value lowest = b.Const(b.dtype(x), -std::numeric_limits<double>::infinity());
  for (const Window& w : windows) {
    x = Padded(call, x, lowest, w.dim, w.padding, w.padding, call.ExtentOf(w.input + 2 * w.padding));
  }
  std::vector<Candidate> candidates;
  int64_t at[2];
  for (at[0] = 0; at[0] < windows[0].kernel; ++at[0]) {
    for (at[1] = 0; at[1] < windows[1].kernel; ++at[1]) {
      candidates.push_back({ElementOfWindows(call, x, dims, windows, at), IndexOfElement(call, dims, windows, at)});
    }
  }
  const Candidate best = Best(b, candidates);
  call.Return(0, best.value);
  call.Return(1, best.index);
  return true;
}

constexpr lazy::Row kRows[] = {
    {"aten::max_pool2d_with_indices", MaxPool2d},
};

}  // namespace

Rows PoolingRows() { return kRows; }

}  // namespace torch_lazy::device
