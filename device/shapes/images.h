// SPDX-License-Identifier: Apache-2.0
// Convolutions, pooling and resampling. Their results lie as their input does: row-major, or channels last.
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool Convolution(ShapeCall& call);
bool ConvolutionBackward(ShapeCall& call);
bool MaxPool(ShapeCall& call);
bool AveragePool(ShapeCall& call);
bool PoolBackward(ShapeCall& call);
bool Resize(ShapeCall& call);
bool ResizeBackward(ShapeCall& call);
bool Pad(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
