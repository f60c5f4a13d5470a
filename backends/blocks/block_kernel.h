// SPDX-License-Identifier: Apache-2.0
// A compiled kernel of blocks of threads, whoever runs it.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/plan/plan.h"

namespace torch_lazy::backends {

// What BoundInstance::function points to where the target is CUDA. Lives as long as the process.
struct BlockKernel {
  std::string name;
  int32_t threads = 0;
  int64_t iterations_per_block = 1;
  codegen::Kernel::Exact exact_rows = {};
  codegen::Kernel::Entries entries = {};
  void* one = nullptr;  // the entries, as the backend knows them; null: there is none
  void* many = nullptr;
  void* few = nullptr;
  void* exact = nullptr;
};

inline BlockKernel BlockKernelOf(const codegen::Kernel& kernel) {
  return {kernel.name, kernel.threads, kernel.iterations_per_block, kernel.exact, kernel.entries};
}

// The text for a program of several kernels: each brings types and functions of the same names.
inline std::string InNamespace(const codegen::Kernel& kernel) {
  return "namespace lazy_" + kernel.name + " {\n" + kernel.source + "\n}\n";
}

}  // namespace torch_lazy::backends
