// SPDX-License-Identifier: Apache-2.0
// A function that kernels call, as text.
#pragma once

namespace torch_lazy::codegen {

struct NamedFunction {
  const char* name;
  const char* text;
  bool for_cpu_alone = false;
};

}  // namespace torch_lazy::codegen
