// SPDX-License-Identifier: Apache-2.0
// Loss functions and their gradients.
//
// Operands are f32 or f64; numbers have rank 0. A gradient's `grad` has the loss's dims: those of
// the elements for kNone, rank 0 otherwise.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

enum class Reduction { kNone, kMean, kSum };  // ATen's numbers

Value Reduced(Builder& b, Value elements, Reduction reduction);

Value MseLoss(Builder& b, Value x, Value target, Reduction reduction);
Value MseLossBackward(Builder& b, Value grad, Value x, Value target, Reduction reduction);
Value SmoothL1Loss(Builder& b, Value x, Value target, Reduction reduction, Value beta);
Value SmoothL1LossBackward(Builder& b, Value grad, Value x, Value target, Reduction reduction, Value beta);
Value HuberLoss(Builder& b, Value x, Value target, Reduction reduction, Value delta);

// `weight` may be kNoValue, else it broadcasts to x.
Value BinaryCrossEntropy(Builder& b, Value x, Value target, Value weight, Reduction reduction);
Value BinaryCrossEntropyBackward(Builder& b, Value grad, Value x, Value target, Value weight, Reduction reduction);
Value BinaryCrossEntropyWithLogits(Builder& b, Value x, Value target, Value weight, Value pos_weight,
                                   Reduction reduction);

// log_probs is [classes] or [batch, classes, ...]; target, i64, lacks the classes' dim. `weight`
// ([classes]) may be kNoValue. `ignore_index` is i64. A target that is neither a class nor ignored
// gives NaN, and has no gradient.
struct NllLossResult {
  Value loss;
  Value total_weight;  // rank 0
};
NllLossResult NllLoss(Builder& b, Value log_probs, Value target, Value weight, Reduction reduction, Value ignore_index);
Value NllLossBackward(Builder& b, Value grad, Value log_probs, Value target, Value weight, Reduction reduction,
                      Value ignore_index, Value total_weight);

}  // namespace torch_lazy::ir::decompose
