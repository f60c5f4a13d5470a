// SPDX-License-Identifier: Apache-2.0
// Layer, group and batch normalisation, and their gradients.
//
// Operands are f32 or f64; `eps` and `momentum` have rank 0. `weight` and `bias` may be kNoValue.
// In the formulas, xh = (x - mean) * rstd, and S is a sum over the normalised elements, of which
// there are N.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

struct Normalized {
  Value y;
  Value mean;
  Value rstd;  // 1 / sqrt(variance + eps)
};
struct NormGradients {
  Value x;
  Value weight;
  Value bias;
};

// Over the dims from `axis` on; weight and bias have these dims. mean and rstd keep them as
// extent 1.
Normalized LayerNorm(Builder& b, Value x, int axis, Value weight, Value bias, Value eps);
NormGradients LayerNormBackward(Builder& b, Value grad, Value x, int axis, Value mean, Value rstd, Value weight);

// x is [batch, channels, ...], weight and bias [channels], mean and rstd [batch, groups].
struct Groups {
  Extent count;
  Extent channels;  // of one group
};
Normalized GroupNorm(Builder& b, Value x, Groups groups, Value weight, Value bias, Value eps);
NormGradients GroupNormBackward(Builder& b, Value grad, Value x, Groups groups, Value mean, Value rstd, Value weight);

// x is [batch, channels, ...]; all else is [channels].
struct BatchNormTraining {
  Normalized normalized;
  Value running_mean;  // new values; kNoValue where none was given
  Value running_variance;
};
BatchNormTraining BatchNormForTraining(Builder& b, Value x, Value weight, Value bias, Value running_mean,
                                       Value running_variance, Value momentum, Value eps);
Value BatchNormForInference(Builder& b, Value x, Value weight, Value bias, Value running_mean, Value running_variance,
                            Value eps);
// mean and rstd are those of the batch when training, the running ones otherwise.
NormGradients BatchNormBackward(Builder& b, Value grad, Value x, Value mean, Value rstd, Value weight, bool training);
Value Rstd(Builder& b, Value variance, Value eps);

}  // namespace torch_lazy::ir::decompose
