// SPDX-License-Identifier: Apache-2.0
// Choosing elements, putting tensors together, and putting elements in order.
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool Gather(ShapeCall& call);
bool IndexSelect(ShapeCall& call);
bool Index(ShapeCall& call);
bool IndexPutInPlace(ShapeCall& call);
bool Concatenate(ShapeCall& call);
bool Triangle(ShapeCall& call);
bool Flip(ShapeCall& call);
bool Roll(ShapeCall& call);
bool Sort(ShapeCall& call);
bool TopK(ShapeCall& call);
bool Bucketize(ShapeCall& call);
bool Where(ShapeCall& call);
bool MaskedFill(ShapeCall& call);
bool PartBackward(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
