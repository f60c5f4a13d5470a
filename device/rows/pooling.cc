// SPDX-License-Identifier: Apache-2.0
// Pooling with windows: each element of a window is a slice of the input with the pool's stride. Windows that reach
// over the input's edge are few, and are made apart.
#include <algorithm>
#include <limits>
#include <vector>

#include "device/rows/formula.h"
#include "device/rows/joins.h"
#include "device/rows/pool_windows.h"
#include "device/rows/rows.h"
#include "device/shapes/images.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

// Neighbouring windows, of which the elements [begin, end) are there.
struct Run {
  int64_t first, count;
  int64_t begin, end;
};

std::vector<Run> RunsOf(const Window& w, int64_t num_windows) {
  std::vector<Run> runs;
  for (int64_t k = 0; k < num_windows; ++k) {
    const int64_t start = k * w.stride - w.padding + w.margin;
    const int64_t begin = CeilDiv(-start, w.dilation);
    const int64_t end = std::min(w.kernel, CeilDiv(w.input + 2 * w.margin - start, w.dilation));
    if (runs.empty() || runs.back().begin != begin || runs.back().end != end) runs.push_back({k, 0, begin, end});
    ++runs.back().count;
  }
  return runs;
}

// Windows with the same elements in both dims.
struct Patch {
  const Window* windows;
  const Run* runs[2];
  ir::Dims dims;  // of the result

  // Where the element `at` of the first window stands in the input.
  int64_t Place(int k, const int64_t* at) const {
    return runs[k]->first * windows[k].stride - windows[k].padding + at[k] * windows[k].dilation;
  }
};

// The element `at` of each window.
ir::Value ElementOf(lazy::Lowering& call, ir::Value x, const Patch& patch, const int64_t* at) {
  ir::Dims starts(patch.dims.size(), ir::Extent::Constant(0));
  ir::Ints steps(patch.dims.size(), 1);
  for (int k = 0; k < 2; ++k) {
    const Window& w = patch.windows[k];
    starts[static_cast<size_t>(w.dim)] = call.ExtentOf(patch.Place(k, at) + w.margin);
    steps[static_cast<size_t>(w.dim)] = w.stride;
  }
  return call.b().Slice(x, starts, patch.dims, steps);
}

// Of each window, the index of its first element in the rows and columns of the input, as ATen counts them. That
// element may be in the padding; `is_inside`: it is moved into the input.
ir::Value FirstIndexOf(lazy::Lowering& call, const Patch& patch, bool is_inside) {
  ir::Builder& b = call.b();
  const ir::Type type{DType::kI64, patch.dims};
  constexpr int64_t kFirst[] = {0, 0};
  const auto number = [&](int64_t value) { return b.Full(b.Const(DType::kI64, value), patch.dims); };
  ir::Value index = number(0);
  for (int k = 0; k < 2; ++k) {
    const Window& w = patch.windows[k];
    const ir::Value extent = b.Full(b.ExtentOf(call.ExtentOf(w.input)), patch.dims);
    ir::Value place = b.Add(b.Mul(b.Iota(type, w.dim), number(w.stride)), number(patch.Place(k, kFirst)));
    if (is_inside) place = b.Binary(Op::kMax, place, number(0));
    index = b.Add(b.Mul(index, extent), place);
  }
  return index;
}

struct Candidate {
  ir::Value value, index;
};

// Of a window's elements in order: a later one wins if it is greater, or NaN. In pairs, which wait less for each other.
// The value is of this dtype, and the last index is chosen by it, so that one kernel makes both.
Candidate Best(ir::Builder& b, absl::Span<const Candidate> candidates, DType dtype) {
  if (candidates.size() == 1) return {b.Cast(candidates[0].value, dtype), candidates[0].index};
  const DType computed = b.dtype(candidates[0].value);
  const size_t half = (candidates.size() + 1) / 2;
  const Candidate former = Best(b, candidates.first(half), computed),
                  later = Best(b, candidates.subspan(half), computed);
  const ir::Value greatest = b.Cast(b.Binary(Op::kMax, later.value, former.value), dtype);
  const ir::Value is_greater = b.Binary(Op::kGt, b.Cast(greatest, computed), former.value);
  const ir::Value is_nan = b.Binary(Op::kNe, later.value, later.value);
  return {greatest, b.Where(is_nan, later.index, b.Where(is_greater, later.index, former.index))};
}

// Indices are counted from each window's first element until the best is known.
Candidate BestOf(lazy::Lowering& call, ir::Value x, const Patch& patch) {
  ir::Builder& b = call.b();
  const DType dtype = b.dtype(x), computed = ir::IsHalf(dtype) ? DType::kF32 : dtype;
  const Window &rows = patch.windows[0], &columns = patch.windows[1];
  const ir::Value row = b.ExtentOf(call.ExtentOf(columns.input));
  std::vector<Candidate> of_rows;
  int64_t at[2];
  for (at[0] = patch.runs[0]->begin; at[0] < patch.runs[0]->end; ++at[0]) {
    std::vector<Candidate> candidates;
    for (at[1] = patch.runs[1]->begin; at[1] < patch.runs[1]->end; ++at[1]) {
      const ir::Value index = b.Full(b.Const(DType::kI64, at[1] * columns.dilation), patch.dims);
      candidates.push_back({b.Cast(ElementOf(call, x, patch, at), computed), index});
    }
    const Candidate best = Best(b, candidates, computed);
    const ir::Value before = b.Mul(b.Const(DType::kI64, at[0] * rows.dilation), row);
    of_rows.push_back({best.value, b.Add(best.index, b.Full(before, patch.dims))});
  }
  const Candidate best = Best(b, of_rows, dtype);
  ir::Value index = b.Add(FirstIndexOf(call, patch, /*is_inside=*/false), best.index);
  if (rows.margin > 0 || columns.margin > 0) {  // where the padding is written, all of a window may be as low
    const ir::Value zero = b.Full(b.Const(DType::kI64, 0), patch.dims);
    index = b.Where(b.Binary(Op::kEq, best.index, zero), FirstIndexOf(call, patch, /*is_inside=*/true), index);
  }
  return {best.value, index};
}

// Side by side along a dim of the result.
Candidate Join(ir::Builder& b, const std::vector<Candidate>& parts, int dim, ir::Extent extent) {
  std::vector<ir::Value> values, indices;
  for (const Candidate& part : parts) {
    values.push_back(part.value);
    indices.push_back(part.index);
  }
  return {b.Concat(values, dim, extent), b.Concat(indices, dim, extent)};
}

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode). An element of the padding never
// wins.
bool MaxPool2d(lazy::Lowering& call) {
  constexpr size_t kMostPatches = 9;       // else the padding is written
  constexpr size_t kMostPatchesOnGpu = 4;  // a launch each; ATen has one for all
  ir::Builder& b = call.b();
  const ir::Ints order = OrderOf(call, 0);
  ir::Value x = b.Permute(call.Tensor(0), InverseOf(order));
  const ir::Ints kernel = call.IntList(1), stride = call.IntList(2), padding = call.IntList(3),
                 dilation = call.IntList(4);
  if (!ir::IsFloat(b.dtype(x)) || call.Bool(5)) return false;
  const ir::Dims dims = InOrder(call.Result(0).dims, order);
  const ir::Ints sizes = call.Sizes(0);
  const size_t rank = order.size();
  Window windows[2];
  std::vector<Run> runs[2];
  for (int k = 0; k < 2; ++k) {
    Window& w = windows[k];
    w.dim = static_cast<int>(order[rank - 2 + static_cast<size_t>(k)]);
    w.kernel = ItemOr(kernel, static_cast<size_t>(k), 1);
    w.stride = ItemOr(stride, static_cast<size_t>(k), w.kernel);
    w.padding = ItemOr(padding, static_cast<size_t>(k), 0);
    w.dilation = ItemOr(dilation, static_cast<size_t>(k), 1);
    w.input = sizes[rank - 2 + static_cast<size_t>(k)];
  }
  if (windows[0].kernel * windows[1].kernel > kMostInWindow) return false;
  for (const Window& w : windows) {
    if (w.padding > 0 && w.dilation > 1) return false;
  }
  const auto find_runs = [&] {
    for (int k = 0; k < 2; ++k) {
      const Window& w = windows[k];
      runs[k] = RunsOf(w, (w.input + 2 * w.padding - w.dilation * (w.kernel - 1) - 1) / w.stride + 1);
    }
  };
  find_runs();
  const size_t num_patches = runs[0].size() * runs[1].size();
  if (call.IsForCuda() && num_patches > kMostPatchesOnGpu) return false;
  if (num_patches > kMostPatches) {
    const ir::Value lowest = b.Const(b.dtype(x), -std::numeric_limits<double>::infinity());
    for (Window& w : windows) {
      x = Padded(call, x, lowest, w.dim, w.padding, w.padding, call.ExtentOf(w.input + 2 * w.padding));
      w.margin = w.padding;
    }
    find_runs();
  }
  std::vector<Candidate> rows;
  for (const Run& row : runs[0]) {
    std::vector<Candidate> patches;
    for (const Run& column : runs[1]) {
      Patch patch{windows, {&row, &column}, dims};
      for (int k = 0; k < 2; ++k) patch.dims[static_cast<size_t>(windows[k].dim)] = call.ExtentOf(patch.runs[k]->count);
      patches.push_back(BestOf(call, x, patch));
    }
    rows.push_back(Join(b, patches, windows[1].dim, dims[static_cast<size_t>(windows[1].dim)]));
  }
  const Candidate best = Join(b, rows, windows[0].dim, dims[static_cast<size_t>(windows[0].dim)]);
  call.Return(0, b.Permute(best.value, order));
  call.Return(1, b.Permute(best.index, order));
  return true;
}

constexpr lazy::Row kPoolingRows[] = {
    {"aten::max_pool2d_with_indices", MaxPool2d, kTakesAllValues, shapes::MaxPool},
};

}  // namespace

Rows PoolingRows() { return kPoolingRows; }

}  // namespace torch_lazy::device
