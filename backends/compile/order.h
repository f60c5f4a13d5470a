// SPDX-License-Identifier: Apache-2.0
// What is to be compiled, and what has become of it, as text between processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/left_graph.h"
#include "codegen/plan/plan.h"

namespace torch_lazy::backends {

// Kernels that are compiled together, to one file of code. Or, where `is_left`, what a program that
// ends has left to do.
struct Order {
  enum class Language { kCpp, kCuda };
  Language language = Language::kCpp;
  std::vector<std::string> command;  // C++: the compiler and its flags. CUDA: NVRTC's file, and the architecture.
  std::string cache_root;            // the code is kept in this DiskCache; empty: in none
  std::string cache_key;
  std::string lock_path;                 // of the lock that is held meanwhile; empty: none
  pid_t process = 0;                     // whose order it is
  std::vector<codegen::Kernel> kernels;  // names and texts alone are passed on
  // --- of what is left ---
  bool is_left = false;
  std::vector<LeftGraph> graphs;
  std::vector<std::string> others;  // names of kernels that other processes are compiling
  std::string disabled;             // option `disable`
};

// The whole text for the compiler.
std::string SourceOf(Order::Language language, absl::Span<const codegen::Kernel> kernels);

std::string TextOf(const Order& order);
absl::StatusOr<Order> OrderFrom(std::string_view text);

// What has become of it.
struct Compiled {
  absl::StatusOr<std::string> code;  // kInvalidArgument: a kernel does not compile
  absl::Status kept;                 // why the code is not in the cache, if it should be
};
std::string TextOf(const Compiled& compiled);
Compiled CompiledFrom(std::string_view text);

}  // namespace torch_lazy::backends
