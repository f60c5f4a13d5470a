// SPDX-License-Identifier: Apache-2.0
// What the elementwise ops mean, one number at a time.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

// One element of a `kSame` op. f32 is computed in f32, except transcendental functions: in f64,
// then rounded.
double ElementOf(Op op, DType dtype, absl::Span<const double> inputs);
int64_t ElementOf(Op op, DType dtype,
                  absl::Span<const int64_t> inputs);  // wraps; division by 0 gives 0

bool Compare(Op op, double a, double b);
bool Compare(Op op, int64_t a, int64_t b);

}  // namespace torch_lazy::ir
