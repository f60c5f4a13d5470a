// SPDX-License-Identifier: Apache-2.0
// The rows of the ATen tables, by family.
//
// A row names the functional form of an overload and lowers it; the in-place and `out=` forms come with it
// (lazy/ops/op.h). Only what is equal to eager's result on the CPU is lowered: bit for bit where a kernel computes
// exactly, within 2 ulp where it is transcendental, and sums at least as accurately. Everything else returns false and
// is run by ATen.
#pragma once

#include "absl/types/span.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {

using Rows = absl::Span<const lazy::Row>;

Rows UnaryRows();
Rows ArithmeticRows();
Rows TernaryRows();
Rows ComparisonRows();
Rows ActivationRows();
Rows CopyRows();
Rows JoinRows();
Rows MatmulRows();
Rows PoolingRows();
Rows PoolingGradientRows();
Rows ReductionRows();
Rows MomentRows();
Rows SoftmaxRows();
Rows NormRows();
Rows LossRows();
Rows ForeachRows();
Rows OptimizerRows();
Rows DropoutRows();
Rows CellRows();
Rows CheckedRows();

// Makes all rows known to lazy/, before the first operator is looked up.
void RegisterRows();

}  // namespace torch_lazy::device
