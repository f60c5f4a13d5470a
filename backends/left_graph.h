// SPDX-License-Identifier: Apache-2.0
// A graph that a program has asked for, and that was not planned before its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace torch_lazy::backends {

struct LeftGraph {
  std::string text;              // as ir/print.h writes it
  std::vector<int64_t> numbers;  // of its symbols
  std::string note;              // the key of the word that names its kernels
};

}  // namespace torch_lazy::backends
