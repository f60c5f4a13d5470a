// SPDX-License-Identifier: Apache-2.0
// Elements by their places, and places by elements: ATen runs them.
#include "device/shapes/indexing.h"
#include "device/rows/rows.h"
#include "device/shapes/in_place.h"
#include "device/shapes/layers.h"

namespace torch_lazy::device {
namespace {

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
    {.name = "aten::index_copy", .shape_in_place = shapes::IndexedInPlace},
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
