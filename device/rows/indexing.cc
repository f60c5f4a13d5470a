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
  const ir::Value self = call.Tensor(0), source = call.Tensor(3);
  const int rank = b.rank(self);
  if (!call.IsForCuda() || rank == 0 || b.rank(source) != rank) return false;
  const int dim = static_cast<int>(call.Int(1) < 0 ? call.Int(1) + rank : call.Int(1));
  const ir::Extent rows = b.dims(source)[dim];
  if (call.IsDeterministic() && !rows.is_one()) return false;  // which of equal indices comes last
  const ir::Value index = b.Reshape(b.Cast(call.Tensor(2), ir::DType::kI64), {rows});
  call.Return(0, b.Put(self, source, index, dim));
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
    {.name = "aten::_index_put_impl_", .shape = shapes::IndexPutInPlace},
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
