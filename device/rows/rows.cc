// SPDX-License-Identifier: Apache-2.0
#include "device/rows/rows.h"

namespace torch_lazy::device {

void RegisterRows() {
  for (Rows (*family)() :
       {UnaryRows,  ArithmeticRows, TernaryRows,         ComparisonRows, ActivationRows, CopyRows,    JoinRows,
        MatmulRows, PoolingRows,    PoolingGradientRows, ReductionRows,  MomentRows,     SoftmaxRows, NormRows,
        LossRows,   ForeachRows,    OptimizerRows,       DropoutRows,    CellRows,       CheckedRows}) {
    for (const lazy::Row& row : family()) lazy::RegisterRow(row);
  }
}

}  // namespace torch_lazy::device
