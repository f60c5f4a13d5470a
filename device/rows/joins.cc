// SPDX-License-Identifier: Apache-2.0
// Tensors side by side, with each other or with constants: all of them concatenations.
#include <algorithm>

#include "device/rows/joins.h"
#include "device/rows/rows.h"
#include "device/shapes/images.h"
#include "device/shapes/indexing.h"

namespace torch_lazy::device {

ir::Value Padded(lazy::Lowering& call, ir::Value x, ir::Value value, int dim, int64_t before, int64_t after,
                 ir::Extent extent) {
  std::vector<ir::Value> parts;
  const auto add_constant = [&](int64_t count) {
    ir::Dims dims = call.b().dims(x);
    dims[static_cast<size_t>(dim)] = call.ExtentOf(count);
    if (count > 0) parts.push_back(call.b().Full(value, dims));
  };
  add_constant(before);
  parts.push_back(x);
  add_constant(after);
  return call.b().Concat(parts, dim, extent);
}

namespace {

int Wrapped(int64_t dim, int rank) { return static_cast<int>(dim < 0 ? dim + rank : dim); }

// Empty tensors of one dim fit to any others, by an old rule of ATen's.
bool Concatenate(lazy::Lowering& call) {
  const ir::Type result = call.Result(0);
  const int dim = Wrapped(call.Int(1), result.rank());
  std::vector<ir::Value> parts;
  for (int k = 0; k < call.ListSize(0); ++k) {
    const ir::Value part = call.ListTensor(0, k);
    if (call.b().rank(part) == result.rank()) parts.push_back(call.b().Cast(part, result.dtype));
  }
  if (parts.empty()) return false;
  call.Return(0, call.b().Concat(parts, dim, result.dims[static_cast<size_t>(dim)]));
  return true;
}

bool Stack(lazy::Lowering& call) {
  const ir::Type result = call.Result(0);
  const int dim = Wrapped(call.Int(1), result.rank());
  std::vector<ir::Value> parts;
  for (int k = 0; k < call.ListSize(0); ++k) parts.push_back(call.b().Cast(call.ListTensor(0, k), result.dtype));
  // Their number is a symbol there like any extent.
  call.Return(0, call.b().Reshape(call.b().Stack(parts, dim), result.dims));
  return true;
}

// Negative amounts, which cut, are ATen's.
bool Pad(lazy::Lowering& call) {
  const ir::Ints amounts = call.IntList(1);
  if (std::any_of(amounts.begin(), amounts.end(), [](int64_t amount) { return amount < 0; })) return false;
  const ir::Dims dims = call.Result(0).dims;
  ir::Value x = call.Tensor(0);
  const ir::Value value = call.Number(2, call.b().dtype(x));
  for (size_t k = 0; k < amounts.size() / 2; ++k) {
    const size_t dim = dims.size() - 1 - k;
    x = Padded(call, x, value, static_cast<int>(dim), amounts[2 * k], amounts[2 * k + 1], dims[dim]);
  }
  call.Return(0, x);
  return true;
}

// `gradient` in zeros: `length` of the `size` elements along `dim`, from `start` on.
void ReturnInZeros(lazy::Lowering& call, ir::Value gradient, int dim, int64_t start, int64_t length, int64_t size) {
  const ir::Value zero = call.b().Const(call.b().dtype(gradient), 0);
  call.Return(0, Padded(call, gradient, zero, dim, start, size - start - length, call.ExtentOf(size)));
}

bool SliceBackward(lazy::Lowering& call) {
  const ir::Ints sizes = call.IntList(1);
  const int dim = Wrapped(call.Int(2), static_cast<int>(sizes.size()));
  const int64_t size = sizes[static_cast<size_t>(dim)];
  if (call.Int(5) != 1) return false;
  const auto place = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size); };
  const int64_t start = place(call.Int(3)), end = std::max(start, place(call.Int(4)));
  ReturnInZeros(call, call.Tensor(0), dim, start, end - start, size);
  return true;
}

bool SelectBackward(lazy::Lowering& call) {
  const ir::Ints sizes = call.IntList(1);
  const int dim = Wrapped(call.Int(2), static_cast<int>(sizes.size()));
  const int64_t size = sizes[static_cast<size_t>(dim)], index = call.Int(3);
  ir::Dims dims = call.Result(0).dims;
  dims[static_cast<size_t>(dim)] = ir::Extent::Constant(1);
  ReturnInZeros(call, call.b().Reshape(call.Tensor(0), dims), dim, index < 0 ? index + size : index, 1, size);
  return true;
}

constexpr lazy::Row kJoinRows[] = {
    {"aten::cat", Concatenate, kTakesAllValues, shapes::Concatenate},
    {"aten::constant_pad_nd", Pad, kWhole | kTakesAllValues, shapes::Pad},
    {"aten::select_backward", SelectBackward, kTakesAllValues, shapes::PartBackward},
    {"aten::slice_backward", SliceBackward, kWhole | kTakesAllValues, shapes::PartBackward},
    {"aten::stack", Stack, kTakesAllValues},
    {.name = "aten::diagonal_*", .flags = kTakesAllValues},
    {.name = "aten::split*", .flags = kTakesAllValues},
};

}  // namespace

Rows JoinRows() { return kJoinRows; }

}  // namespace torch_lazy::device
