// SPDX-License-Identifier: Apache-2.0
#include "device/rows/rows.h"

#include "lazy/ops/rows.h"

namespace torch_lazy::device {
namespace {

constexpr lazy::Row kLibraries[] = {
    {.name = "aten::*", .flags = kAsDeclared},
    {.name = "torch_lazy::*", .flags = kAsDeclared | kTakesAllValues},
};

}  // namespace

std::vector<Rows> AllRows() {
  return {kLibraries,       ActivationRows(), ArithmeticRows(), AttentionRows(),       CellRows(),    CheckedRows(),
          ComparisonRows(), CopyRows(),       DropoutRows(),    FactoryRows(),         ForeachRows(), ImageRows(),
          IndexingRows(),   JoinRows(),       LossRows(),       MatmulRows(),          MomentRows(),  NestedRows(),
          NormRows(),       OptimizerRows(),  OrderRows(),      PoolingGradientRows(), PoolingRows(), ReductionRows(),
          SoftmaxRows(),    TernaryRows(),    UnaryRows()};
}

void RegisterRows() {
  for (const Rows family : AllRows()) {
    for (const lazy::Row& row : family) lazy::RegisterRow(row);
  }
}

}  // namespace torch_lazy::device
