// SPDX-License-Identifier: Apache-2.0
// Scratch memory of a row kernel: arrays of one element for each of the row.
//
// Numbers that are kept, and rows to be streamed, take arrays one after the other: what a stage
// writes may replace, element by element, what it reads for the last time. The fewer there are, the
// more of the row stays in the nearest cache.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/kernels/body.h"
#include "codegen/kernels/kernel_text.h"
#include "codegen/kernels/row_stages.h"

namespace torch_lazy::codegen {

class RowScratch {
 public:
  // Declares the arrays.
  RowScratch(const Body& body, const RowStages& rows, const Loops& loops, KernelText* text);

  // The names of the arrays: of a kept number or a share's sums, and of a row that is streamed.
  const std::string& Of(int expression) const { return arrays_[array_of_.at(expression)].name; }
  const std::string& RowOf(const Store& store) const { return arrays_[row_of_.at(store.address)].name; }

  // Sets what the kernel needs.
  void Note(const Loops& loops, Instance* instance) const;

 private:
  struct Array {
    std::string type;
    int64_t bytes;  // of an element
    int free_from;  // stage
    std::string name = "";
  };
  int Take(const std::string& type, int64_t bytes, int from, int free_from);
  void Declare(const Loops& loops, KernelText* text);

  std::vector<Array> arrays_;
  absl::flat_hash_map<int, int> array_of_;  // by expression
  absl::flat_hash_map<int, int> row_of_;    // by address
  int64_t element_bytes_ = 0, padding_bytes_ = 0;
};

}  // namespace torch_lazy::codegen
