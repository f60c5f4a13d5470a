// SPDX-License-Identifier: Apache-2.0
// Sums of rows that are 0 but at one place, which the row names: the score of a class, and what its
// loss' gradient sums up to. They take no walk.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernels/kernel_text.h"

namespace torch_lazy::codegen::cuda {

// sum(cast(.. where(place == number && conditions, value, 0))), all expressions of the body.
struct OneHot {
  int sum, where;
  std::vector<int> casts;        // of the where, from the inside
  int number, place;             // which place, and the iota that counts them
  std::vector<int> conditions;   // of the row
  int value;                     // of the row, or casts of what is loaded along it,
  int load = -1;                 // which is this
  std::vector<int> value_casts;  // from the inside
};

// Nothing if the reduction is another; `loop` is along the row.
std::optional<OneHot> OneHotOf(const KernelText& text, int reduction, const Loop& loop);

// Declares the sum of a row of `length` elements.
void DefineOneHot(const OneHot& one_hot, const Loop& loop, KernelText* text);

}  // namespace torch_lazy::codegen::cuda
