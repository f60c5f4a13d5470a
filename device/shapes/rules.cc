// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/rules.h"

#include "lazy/ops/op.h"

namespace torch_lazy::device {

void RegisterShapeRules() {
  for (ShapeRows (*family)() : {InPlaceShapes, ProductShapes, ReductionShapes, LayerShapes, ImageShapes, IndexingShapes,
                                CellShapes, FactoryShapes}) {
    for (const ShapeRow& row : family()) lazy::RegisterShapeRule(row.name, row.rule);
  }
}

}  // namespace torch_lazy::device
