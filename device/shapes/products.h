// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool Product(ShapeCall& call);
bool ProductAndSum(ShapeCall& call);
bool MatrixVector(ShapeCall& call);
bool Dot(ShapeCall& call);
bool Linear(ShapeCall& call);
bool LinearBackward(ShapeCall& call);
bool Attention(ShapeCall& call);
bool AttentionBackward(ShapeCall& call);
bool AttentionOfCuda(ShapeCall& call);
bool AttentionOfCudaBackward(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
