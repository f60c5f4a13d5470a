// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/similar_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace torch_lazy::lazy {

std::string SimilarWord(absl::Span<const int64_t> numbers, int parts, bool aligned) {
  constexpr int kMostZeros = 3;
  std::string word = "[";
  for (const int64_t number : numbers) {
    if (word.size() > 1) word += ",";
    if (number <= 1) {
      absl::StrAppend(&word, "=", number);
      continue;
    }
    absl::StrAppend(&word, std::lround(parts * std::log2(static_cast<double>(number))));
    if (aligned) absl::StrAppend(&word, ":", std::min(std::countr_zero(static_cast<uint64_t>(number)), kMostZeros));
  }
  return word + "]";
}

}  // namespace torch_lazy::lazy
