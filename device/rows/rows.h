// SPDX-License-Identifier: Apache-2.0
// The rows, by family: all that is known of an operator of ATen's, or of our own.
//
//   {"aten::addmm", AddProduct, kStructuralScalars | kTakesAllValues, shapes::ProductAndSum},
//   {.name = "aten::embedding", .flags = kWhole, .shape = shapes::Embedding},
//   {.name = "aten::upsample_*", .flags = kTakesAllValues},
//
// The first says how addmm is computed by primitives, that the values of its numbers belong to a trace's path, that no
// value makes it fail, and by which rule the size of its result follows (device/shapes). The second has no lowering:
// ATen runs embedding. The third is of all operators whose names begin so. What a row may say: lazy/ops/row.h.
//
// A row names the functional form of an overload; the in-place and `out=` forms come with it. Only what is equal to
// eager's result on the CPU is lowered: bit for bit where a kernel computes exactly, within 2 ulp where it is
// transcendental, and sums at least as accurately. Everything else returns false and is run by ATen.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "lazy/ops/row.h"

namespace torch_lazy::device {

using Rows = absl::Span<const lazy::Row>;

using enum lazy::RowFlags;

Rows ActivationRows();
Rows ArithmeticRows();
Rows AttentionRows();
Rows CellRows();
Rows CheckedRows();
Rows ComparisonRows();
Rows CopyRows();
Rows DropoutRows();
Rows FactoryRows();
Rows ForeachRows();
Rows ImageRows();
Rows IndexingRows();
Rows JoinRows();
Rows LossRows();
Rows MatmulRows();
Rows MomentRows();
Rows NestedRows();
Rows NormRows();
Rows OptimizerRows();
Rows OrderRows();
Rows PoolingRows();
Rows PoolingGradientRows();
Rows ReductionRows();
Rows SoftmaxRows();
Rows TernaryRows();
Rows UnaryRows();

// Those of all families.
std::vector<Rows> AllRows();

// Makes all rows known to lazy/, before the first operator is looked up.
void RegisterRows();

}  // namespace torch_lazy::device
