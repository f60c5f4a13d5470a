// SPDX-License-Identifier: Apache-2.0
// Elements by their places, and places by elements: ATen runs them, but for rows that a GPU puts in their places.
#include "device/shapes/indexing.h"
#include "device/rows/rows.h"
#include "device/shapes/in_place.h"
#include "device/shapes/layers.h"
#include "lazy/lower/lowering.h"

namespace torch_lazy::device {
namespace {

// index_copy(self, dim, index, source). On the CPU ATen's call tells who reads an index out of range.
bool IndexCopy(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  const ir::Value self = call.Tensor(0), places = call.Tensor(2), source = call.Tensor(3);
  const int rank = b.rank(self);
  const bool fits = b.rank(source) == rank && b.dtype(source) == b.dtype(self) && b.dtype(places) == ir::DType::kI64;
  if (!call.IsForCuda() || rank == 0 || !fits) return false;
  const int dim = static_cast<int>(call.Int(1) < 0 ? call.Int(1) + rank : call.Int(1));
  const ir::Extent rows = b.dims(source)[dim];
  if (call.IsDeterministic() && !rows.is_one()) return false;  // which of equal indices comes last
  call.Return(0, b.Put(self, source, b.Reshape(places, {rows}), dim));
  return true;
}

// Of the indices the one that is given; -1 if there are several, or it is no list of numbers.
int OnlyIndex(lazy::Lowering& call, int arg) {
  int only = -1;
  for (int k = 0; k < call.ListSize(arg); ++k) {
    if (call.ListIsNone(arg, k)) continue;
    if (only >= 0) return -1;
    only = k;
  }
  if (only < 0) return -1;
  const ir::Value index = call.ListTensor(arg, only);
  return call.b().rank(index) == 1 && call.b().dtype(index) != ir::DType::kBool &&
                 call.b().dtype(index) != ir::DType::kU8
             ? only
             : -1;
}

// _index_put_impl_(self, indices, values, accumulate): x[:, places] = values. Negative places count from the end.
bool IndexPut(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  if (!call.IsForCuda() || call.Bool(3)) return false;
  const int dim = OnlyIndex(call, 1);
  if (dim < 0) return false;
  const ir::Value self = call.Tensor(0), index = b.Cast(call.ListTensor(1, dim), ir::DType::kI64);
  ir::Dims rows = b.dims(self);
  rows[dim] = b.dims(index)[0];
  const bool fits = b.dtype(call.Tensor(2)) == b.dtype(self) && b.rank(call.Tensor(2)) <= b.rank(self);
  if (!fits || (call.IsDeterministic() && !rows[dim].is_one())) return false;
  const ir::Value values = b.BroadcastTo(call.Tensor(2), rows);
  const ir::Value end = b.FullLike(b.ExtentOf(b.dims(self)[dim]), index);
  const ir::Value is_from_end = b.Binary(ir::Op::kLt, index, b.Like(index, 0));
  call.Return(0, b.Put(self, values, b.Where(is_from_end, b.Add(index, end), index), dim));
  return true;
}

constexpr lazy::Row kIndexingRows[] = {
    {.name = "aten::bucketize.Tensor", .shape = shapes::Bucketize},
    {.name = "aten::_assert_async*", .flags = kTrapsOnGpu},
    {.name = "aten::embedding", .flags = kWhole | kTrapsOnGpu, .shape = shapes::Embedding},
    {.name = "aten::embedding_dense_backward", .flags = kTakesAllValues, .shape = shapes::EmbeddingBackward},
    {.name = "aten::flip", .flags = kTakesAllValues, .shape = shapes::Flip},
    {.name = "aten::gather", .flags = kTrapsOnGpu, .shape = shapes::Gather},
    {.name = "aten::index*", .flags = kTakesHostTensors | kTrapsOnGpu},
    {.name = "aten::_index_put*", .flags = kTakesHostTensors | kTrapsOnGpu},
    {.name = "aten::_unsafe_index*", .flags = kTakesHostTensors | kTrapsOnGpu},
    {.name = "aten::index.Tensor", .flags = kShapedByMask, .shape = shapes::Index},
    {.name = "aten::_index_put_impl_", .lower = IndexPut, .shape = shapes::IndexPutInPlace},
    {.name = "aten::index_add", .shape_in_place = shapes::IndexedInPlace},
    {.name = "aten::index_copy", .lower = IndexCopy, .shape_in_place = shapes::IndexedInPlace},
    {.name = "aten::index_fill_.int_Tensor", .flags = kTakesNumberOfAnyDevice},
    {.name = "aten::index_select", .shape = shapes::IndexSelect},
    {.name = "aten::put_", .flags = kImmediate},  // where only deterministic algorithms are wanted
    {.name = "aten::roll", .flags = kTakesAllValues, .shape = shapes::Roll},
    {.name = "aten::scatter*", .flags = kTrapsOnGpu},
    {.name = "aten::scatter.src", .shape = shapes::ScatterAnew, .shape_in_place = shapes::ScatterInPlace},
    {.name = "aten::scatter.value", .shape = shapes::ScatterAnew, .shape_in_place = shapes::ScatterInPlace},
    {.name = "aten::scatter_add", .shape = shapes::ScatterAnew, .shape_in_place = shapes::ScatterInPlace},
    {.name = "aten::unfold_backward", .flags = kTakesAllValues},
};

}  // namespace

Rows IndexingRows() { return kIndexingRows; }

}  // namespace torch_lazy::device
