// SPDX-License-Identifier: Apache-2.0
// Pooling with windows: each element of a window is a slice of the input with the pool's stride. Windows that reach over the
// input's edge are few, and are made apart.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "device/aten/formula.h"
#include "device/aten/joins.h"
#include "device/aten/rows.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

constexpr int64_t kMostInWindow = 25;  // elements; ATen's loop is better at more
constexpr int64_t kMostParts = 16;     // of a gradient: a launch each

// One spatial dim of a pool.
struct Window {
  int dim;  // of the input
  int64_t kernel, stride, padding, dilation;
  int64_t input;       // elements
  int64_t margin = 0;  // of these elements of padding are there, at each end
};

// Neighbouring windows, of which the elements [begin, end) are there.
struct Run {
  int64_t first, count;
  int64_t begin, end;
};

int64_t Item(const ir::Ints& list, size_t k, int64_t otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : k];
}

int64_t CeilDiv(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

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

// Of each window, the index of its first element in the rows and columns of the input, as ATen counts them. That element may be in the
// padding; `is_inside`: it is moved into the input.
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

// Of a window's elements in order: a later one wins if it is greater, or NaN. In pairs, which wait less for each other. The value is
// of this dtype, and the last index is chosen by it, so that one kernel makes both.
Candidate Best(ir::Builder& b, absl::Span<const Candidate> candidates, DType dtype) {
  if (candidates.size() == 1) return {b.Cast(candidates[0].value, dtype), candidates[0].index};
  const DType computed = b.dtype(candidates[0].value);
  const size_t half = (candidates.size() + 1) / 2;
  const Candidate former = Best(b, candidates.first(half), computed), later = Best(b, candidates.subspan(half), computed);
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

// On a GPU, the order of the tensor's dims in memory, rows before columns: indices are made in the order in which they are stored.
ir::Ints OrderOf(lazy::Lowering& call, int arg) {
  const ir::Node& node = call.b().graph().node(call.Tensor(arg));
  const int rank = node.type.rank();
  if (call.IsForCuda() && node.op == Op::kPermute && node.attrs.dims[static_cast<size_t>(rank) - 2] < node.attrs.dims[static_cast<size_t>(rank) - 1]) {
    return node.attrs.dims;
  }
  ir::Ints order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

ir::Dims InOrder(const ir::Dims& dims, const ir::Ints& order) {
  ir::Dims ordered = dims;
  for (size_t d = 0; d < order.size(); ++d) ordered[static_cast<size_t>(order[d])] = dims[d];
  return ordered;
}

ir::Ints InverseOf(const ir::Ints& order) {
  ir::Ints inverse(order.size());
  for (size_t k = 0; k < order.size(); ++k) inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  return inverse;
}

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode). An element of the padding never wins.
bool MaxPool2d(lazy::Lowering& call) {
  constexpr size_t kMostPatches = 9;       // else the padding is written
  constexpr size_t kMostPatchesOnGpu = 4;  // a launch each; ATen has one for all
  ir::Builder& b = call.b();
  const ir::Ints order = OrderOf(call, 0);
  ir::Value x = b.Permute(call.Tensor(0), InverseOf(order));
  const ir::Ints kernel = call.IntList(1), stride = call.IntList(2), padding = call.IntList(3), dilation = call.IntList(4);
  if (!ir::IsFloat(b.dtype(x)) || call.Bool(5)) return false;
  const ir::Dims dims = InOrder(call.Result(0).dims, order);
  const ir::Ints sizes = call.Sizes(0);
  const size_t rank = order.size();
  Window windows[2];
  std::vector<Run> runs[2];
  for (int k = 0; k < 2; ++k) {
    Window& w = windows[k];
    w.dim = static_cast<int>(order[rank - 2 + static_cast<size_t>(k)]);
    w.kernel = Item(kernel, static_cast<size_t>(k), 1);
    w.stride = Item(stride, static_cast<size_t>(k), w.kernel);
    w.padding = Item(padding, static_cast<size_t>(k), 0);
    w.dilation = Item(dilation, static_cast<size_t>(k), 1);
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

// Elements of one remainder modulo the stride, in one dim of the input, which the same windows reach: those from `begin` on and before
// `end`, counted from the element's own quotient.
struct Reached {
  int64_t first, count;
  int64_t begin, end;
};

// Of all remainders, in order.
std::vector<std::vector<Reached>> ReachedBy(const Window& w, int64_t num_windows) {
  std::vector<std::vector<Reached>> of_remainder;
  for (int64_t remainder = 0; remainder < w.stride; ++remainder) {
    std::vector<Reached>& all = of_remainder.emplace_back();
    for (int64_t q = 0; q < w.input / w.stride; ++q) {
      const int64_t place = q * w.stride + remainder + w.padding;  // in the padded input
      const int64_t begin = CeilDiv(place - w.kernel + 1, w.stride) - q;
      const int64_t end = std::min(num_windows, place / w.stride + 1) - q;
      if (all.empty() || all.back().begin != begin || all.back().end != end) all.push_back({q, 0, begin, end});
      ++all.back().count;
    }
  }
  return of_remainder;
}

// The gradients of such elements, of dims [..., count, 1, count, 1]: the sums of those of windows that have taken them.
ir::Value GradientOf(lazy::Lowering& call, ir::Value grad, ir::Value index, const Window* windows, const Reached* const* reached,
                     const int64_t* remainders) {
  ir::Builder& b = call.b();
  ir::Dims dims = b.dims(grad);
  for (int k = 0; k < 2; ++k) dims[static_cast<size_t>(windows[k].dim)] = call.ExtentOf(reached[k]->count);
  const auto number = [&](int64_t value) { return b.Full(b.Const(DType::kI64, value), dims); };
  ir::Value here = number(0);
  for (int k = 0; k < 2; ++k) {
    const Window& w = windows[k];
    const ir::Value place = b.Add(b.Mul(b.Iota({DType::kI64, dims}, w.dim), number(w.stride)),
                                  number(reached[k]->first * w.stride + remainders[k]));
    here = b.Add(b.Mul(here, b.Full(b.ExtentOf(call.ExtentOf(w.input)), dims)), place);
  }
  const DType computed = ir::IsHalf(b.dtype(grad)) ? DType::kF32 : b.dtype(grad);
  const ir::Value zero = b.Full(b.Const(computed, 0), dims);
  ir::Value sum = zero;
  int64_t at[2];
  for (at[0] = reached[0]->begin; at[0] < reached[0]->end; ++at[0]) {
    for (at[1] = reached[1]->begin; at[1] < reached[1]->end; ++at[1]) {
      ir::Dims starts(dims.size(), ir::Extent::Constant(0));
      for (int k = 0; k < 2; ++k) starts[static_cast<size_t>(windows[k].dim)] = call.ExtentOf(reached[k]->first + at[k]);
      const ir::Ints steps(dims.size(), 1);
      const ir::Value taken = b.Binary(Op::kEq, b.Slice(index, starts, dims, steps), here);
      const ir::Value gradient = b.Where(taken, b.Cast(b.Slice(grad, starts, dims, steps), computed), zero);
      sum = sum == zero ? gradient : b.Add(sum, gradient);
    }
  }
  for (int k = 1; k >= 0; --k) dims.insert(dims.begin() + windows[k].dim + 1, ir::Extent::Constant(1));
  return b.Reshape(b.Cast(sum, b.dtype(grad)), dims);
}

// max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices). Nobody adds to what another
// writes: each element asks the windows that reach it. Elements of one remainder are made together, and lie between the others.
bool MaxPool2dBackward(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  const ir::Ints order = OrderOf(call, 0), inverse = InverseOf(order);
  const ir::Value grad = b.Permute(call.Tensor(0), inverse), index = b.Permute(call.Tensor(7), inverse);
  const ir::Ints kernel = call.IntList(2), stride = call.IntList(3), padding = call.IntList(4), dilation = call.IntList(5);
  if (!call.IsForCuda() || !ir::IsFloat(b.dtype(grad)) || call.Bool(6)) return false;
  const size_t rank = order.size();
  const ir::Dims dims = InOrder(call.Result(0).dims, order);
  Window windows[2];
  std::vector<std::vector<Reached>> reached[2];
  int64_t parts = 1;
  for (int k = 0; k < 2; ++k) {
    const size_t item = static_cast<size_t>(k);
    Window& w = windows[k];
    w = {static_cast<int>(order[rank - 2 + item]), Item(kernel, item, 1), 0, Item(padding, item, 0), Item(dilation, item, 1),
         call.Sizes(1)[rank - 2 + item]};
    w.stride = Item(stride, item, w.kernel);
    if (w.dilation != 1 || w.input % w.stride != 0) return false;
    reached[k] = ReachedBy(w, call.Sizes(0)[rank - 2 + item]);
    int64_t runs = 0;
    for (const std::vector<Reached>& of_remainder : reached[k]) runs += static_cast<int64_t>(of_remainder.size());
    parts *= runs;
  }
  if (windows[0].kernel * windows[1].kernel > kMostInWindow || parts > kMostParts) return false;
  // [..., quotient, remainder] of each dim
  const int axes[2] = {windows[0].dim, windows[1].dim + 1};
  ir::Dims whole = dims;
  for (int k = 1; k >= 0; --k) {
    whole[static_cast<size_t>(windows[k].dim)] = call.ExtentOf(windows[k].input / windows[k].stride);
    whole.insert(whole.begin() + windows[k].dim + 1, ir::Extent::Constant(windows[k].stride));
  }
  const auto join = [&](int k, auto&& part) {
    std::vector<ir::Value> of_remainders;
    for (size_t r = 0; r < reached[k].size(); ++r) {
      std::vector<ir::Value> runs;
      for (const Reached& run : reached[k][r]) runs.push_back(part(run, static_cast<int64_t>(r)));
      of_remainders.push_back(b.Concat(runs, axes[k], whole[static_cast<size_t>(axes[k])]));
    }
    return b.Concat(of_remainders, axes[k] + 1, whole[static_cast<size_t>(axes[k]) + 1]);
  };
  const ir::Value joined = join(0, [&](const Reached& row, int64_t row_remainder) {
    return join(1, [&](const Reached& column, int64_t column_remainder) {
      const Reached* const both[2] = {&row, &column};
      const int64_t remainders[2] = {row_remainder, column_remainder};
      return GradientOf(call, grad, index, windows, both, remainders);
    });
  });
  call.Return(0, b.Permute(b.Reshape(joined, dims), order));
  return true;
}

constexpr lazy::Row kRows[] = {
    {"aten::max_pool2d_with_indices", MaxPool2d},
    {"aten::max_pool2d_with_indices_backward", MaxPool2dBackward},
};

}  // namespace

Rows PoolingRows() { return kRows; }

}  // namespace torch_lazy::device
