// SPDX-License-Identifier: Apache-2.0
// A graph of many reductions that become one kernel.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace torch_lazy::codegen {

// Sums and largest places down the columns of a matrix, in turns, each of other numbers.
inline std::string ManyFolds(int count) {
  std::string text = "graph @folds(%x: f32[s0, s1], %y: f32[s0, s1]) {\n", results;
  for (int k = 0; k < count; ++k) {
    const std::string x = k == 0 ? "%x" : absl::StrCat("%", 2 * k - 2);
    absl::StrAppend(&text, "  %", 2 * k, " = add ", x, ", %y : f32[s0, s1]\n", "  %", 2 * k + 1,
                    k % 2 == 0 ? " = sum %" : " = argmax %", 2 * k,
                    " {dims=[0], keepdim=false} : ", k % 2 == 0 ? "f32[s1]\n" : "i64[s1]\n");
    absl::StrAppend(&results, k == 0 ? "%" : ", %", 2 * k + 1);
  }
  return absl::StrCat(text, "  return ", results, "\n}\n");
}

}  // namespace torch_lazy::codegen
