// SPDX-License-Identifier: Apache-2.0
// Sums and the like, over all dimensions or some, and what walks along one.
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool Sum(ShapeCall& call);
bool Mean(ShapeCall& call);
bool SumOverDims(ShapeCall& call);
bool MeanOverDims(ShapeCall& call);
bool ProdOverDim(ShapeCall& call);
bool ExtremeOverDims(ShapeCall& call);
bool Extreme(ShapeCall& call);
bool Truth(ShapeCall& call);
bool TruthOverDim(ShapeCall& call);
bool ExtremeOverDim(ShapeCall& call);
bool KthValue(ShapeCall& call);
bool ArgExtreme(ShapeCall& call);
bool Spread(ShapeCall& call);
bool SpreadAndMean(ShapeCall& call);
bool VectorNorm(ShapeCall& call);
bool NormOverDims(ShapeCall& call);
bool Cumulative(ShapeCall& call);
bool Softmax(ShapeCall& call);
bool SoftmaxBackward(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
