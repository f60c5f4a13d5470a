// SPDX-License-Identifier: Apache-2.0
// The gradient of max pooling on a GPU. Nobody adds to what another writes: each element asks the windows that reach
// it. Elements of one remainder modulo the stride are made together, and lie between the others.
#include <algorithm>
#include <vector>

#include "device/rows/formula.h"
#include "device/rows/pool_windows.h"
#include "device/rows/rows.h"
#include "device/shapes/images.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;

constexpr int64_t kMostParts = 16;  // a launch each

// Elements of one remainder modulo the stride, in one dim of the input, which the same windows reach: those from
// `begin` on and before `end`, counted from the element's own quotient.
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
ir::Value GradientOf(lazy::Lowering& call, ir::Value grad, ir::Value index, const Window* windows,
                     const Reached* const* reached, const int64_t* remainders) {
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
      for (int k = 0; k < 2; ++k)
        starts[static_cast<size_t>(windows[k].dim)] = call.ExtentOf(reached[k]->first + at[k]);
      const ir::Ints steps(dims.size(), 1);
      const ir::Value taken = b.Binary(Op::kEq, b.Slice(index, starts, dims, steps), here);
      const ir::Value gradient = b.Where(taken, b.Cast(b.Slice(grad, starts, dims, steps), computed), zero);
      sum = sum == zero ? gradient : b.Add(sum, gradient);
    }
  }
  for (int k = 1; k >= 0; --k) dims.insert(dims.begin() + windows[k].dim + 1, ir::Extent::Constant(1));
  return b.Reshape(b.Cast(sum, b.dtype(grad)), dims);
}

// max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
bool MaxPool2dBackward(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  const ir::Ints order = OrderOf(call, 0), inverse = InverseOf(order);
  const ir::Value grad = b.Permute(call.Tensor(0), inverse), index = b.Permute(call.Tensor(7), inverse);
  const ir::Ints kernel = call.IntList(2), stride = call.IntList(3), padding = call.IntList(4),
                 dilation = call.IntList(5);
  if (!call.IsForCuda() || !ir::IsFloat(b.dtype(grad)) || call.Bool(6)) return false;
  const size_t rank = order.size();
  const ir::Dims dims = InOrder(call.Result(0).dims, order);
  Window windows[2];
  std::vector<std::vector<Reached>> reached[2];
  int64_t parts = 1;
  for (int k = 0; k < 2; ++k) {
    const size_t item = static_cast<size_t>(k);
    Window& w = windows[k];
    w = {static_cast<int>(order[rank - 2 + item]),
         ItemOr(kernel, item, 1),
         0,
         ItemOr(padding, item, 0),
         ItemOr(dilation, item, 1),
         call.Sizes(1)[rank - 2 + item]};
    w.stride = ItemOr(stride, item, w.kernel);
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

constexpr lazy::Row kPoolingGradientRows[] = {
    {"aten::max_pool2d_with_indices_backward", MaxPool2dBackward, kTakesAllValues, shapes::PoolBackward}};

}  // namespace

Rows PoolingGradientRows() { return kPoolingGradientRows; }

}  // namespace torch_lazy::device
