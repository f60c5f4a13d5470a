// SPDX-License-Identifier: Apache-2.0
// Tensors of numbers that follow one another.
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool Arange(ShapeCall& call);
bool Linspace(ShapeCall& call);
bool Eye(ShapeCall& call);
bool EyeOf(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
