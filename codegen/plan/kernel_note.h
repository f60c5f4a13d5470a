// SPDX-License-Identifier: Apache-2.0
// A word of one line that names a plan's kernels, to be kept on disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codegen/plan/plan.h"

namespace torch_lazy::codegen {

std::string KernelNote(const Plan& plan);
// The names; nothing if the word is no such note.
std::optional<std::vector<std::string>> KernelsNamed(absl::string_view note);

}  // namespace torch_lazy::codegen
