// SPDX-License-Identifier: Apache-2.0
// Embeddings, normalisations and losses.
#pragma once

#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::device::shapes {

using lazy::ShapeCall;

bool Embedding(ShapeCall& call);
bool EmbeddingBackward(ShapeCall& call);
bool LayerNorm(ShapeCall& call);
bool LayerNormBackward(ShapeCall& call);
bool GroupNorm(ShapeCall& call);
bool GroupNormBackward(ShapeCall& call);
bool BatchNorm(ShapeCall& call);
bool BatchNormBackward(ShapeCall& call);
bool Loss(ShapeCall& call);
bool LossBackward(ShapeCall& call);
bool NllLoss(ShapeCall& call);
bool NllLossBackward(ShapeCall& call);
bool Clamp(ShapeCall& call);
bool LogSigmoid(ShapeCall& call);
bool Dropout(ShapeCall& call);

}  // namespace torch_lazy::device::shapes
