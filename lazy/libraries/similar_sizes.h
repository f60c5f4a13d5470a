// SPDX-License-Identifier: Apache-2.0
// Sizes that are similar, as words of a key: what was tried with some of them serves all.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace torch_lazy::lazy {

// Of extents or strides, each by its logarithm in parts of an octave: with two parts, 30 and 33 are similar, 24 and 33
// are not. 0 and 1 are like no other. `aligned`: multiples of 8, 4, 2 and others are not similar either, as libraries
// treat them apart.
std::string SimilarWord(absl::Span<const int64_t> numbers, int parts, bool aligned);

}  // namespace torch_lazy::lazy
