// SPDX-License-Identifier: Apache-2.0
// From a shared library to the functions in it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "codegen/plan/plan.h"

namespace torch_lazy::backends {

// Opens a library for good and looks the kernels up in it, in order. kInvalidArgument: a kernel is
// at fault.
absl::StatusOr<std::vector<void*>> LoadKernels(const std::string& library, absl::Span<const codegen::Kernel> kernels);
// The same from a library's bytes, which lie in no file.
absl::StatusOr<std::vector<void*>> LoadCode(const std::string& code, absl::Span<const codegen::Kernel> kernels);

}  // namespace torch_lazy::backends
