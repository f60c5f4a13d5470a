// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/kernel_note.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace torch_lazy::codegen {
namespace {

constexpr absl::string_view kBeginning = "kernels";

}  // namespace

std::string KernelNote(const Plan& plan) {
  std::string note(kBeginning);
  for (const Kernel& kernel : plan.kernels) absl::StrAppend(&note, " ", kernel.name);
  return note;
}

std::optional<std::vector<std::string>> KernelsNamed(absl::string_view note) {
  if (!absl::ConsumePrefix(&note, kBeginning)) return std::nullopt;
  return absl::StrSplit(note, ' ', absl::SkipEmpty());
}

}  // namespace torch_lazy::codegen
