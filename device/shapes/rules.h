// SPDX-License-Identifier: Apache-2.0
// Rules of shape, by family: the sizes of results by those of operands, for operators that TensorIterator does not
// know.
//
// They let a step of sizes that were never seen be recorded like any other. See lazy/shapes/shape_rule.h for what a
// rule must tell.
#pragma once

#include "absl/types/span.h"
#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device {

struct ShapeRow {
  const char* name;  // of the overload
  bool (*rule)(lazy::ShapeCall&);
};
using ShapeRows = absl::Span<const ShapeRow>;

ShapeRows InPlaceShapes();
ShapeRows ProductShapes();
ShapeRows ReductionShapes();
ShapeRows LayerShapes();
ShapeRows ImageShapes();
ShapeRows IndexingShapes();
ShapeRows CellShapes();
ShapeRows FactoryShapes();

// Makes all of them known to lazy/, before the first operator is looked up.
void RegisterShapeRules();

}  // namespace torch_lazy::device
