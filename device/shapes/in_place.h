// SPDX-License-Identifier: Apache-2.0
// Calls that write their first argument and return it.
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool Fill(ShapeCall& call);
bool Copy(ShapeCall& call);
bool ScatterInPlace(ShapeCall& call);
bool ScatterAnew(ShapeCall& call);
bool IndexedInPlace(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
