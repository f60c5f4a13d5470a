// SPDX-License-Identifier: Apache-2.0
// Numbers seen as extents, and the symbols that stand for them in a graph.
#pragma once

#include <cstdint>
#include <vector>

#include <c10/util/ArrayRef.h>

#include "absl/container/flat_hash_map.h"
#include "ir/type.h"

namespace torch_lazy::lazy {

// 0 and 1 are constants; any other number gets a symbol when it is first met, and equal numbers share it.
class SymbolTable {
 public:
  ir::Extent ExtentOf(int64_t number) {
    if (number == 0 || number == 1) return ir::Extent::Constant(number);
    auto [it, is_new] = symbols_.try_emplace(number, static_cast<int32_t>(numbers_.size()));
    if (is_new) numbers_.push_back(number);
    return ir::Extent::Symbol(it->second);
  }
  ir::Dims DimsOf(c10::IntArrayRef numbers) {
    ir::Dims dims;
    for (const int64_t number : numbers) dims.push_back(ExtentOf(number));
    return dims;
  }
  // The number of each symbol.
  const std::vector<int64_t>& numbers() const { return numbers_; }

 private:
  std::vector<int64_t> numbers_;
  absl::flat_hash_map<int64_t, int32_t> symbols_;
};

}  // namespace torch_lazy::lazy
