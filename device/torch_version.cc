// SPDX-License-Identifier: Apache-2.0
// A word about a PyTorch of another version than the one we were compiled for, before anything of ours runs.
//
// It comes where all symbols that we need are there; where one is missing the dynamic linker has complained already, in
// its own words. Python and CMake compare versions before they load or link anything.
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/version.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"

extern "C" __attribute__((weak)) uint64_t aoti_torch_abi_version();  // there since 2.9

namespace torch_lazy::device {
namespace {

std::string NameOf(uint64_t version) {
  return absl::StrCat(version >> 56, ".", version >> 48 & 0xff, ".", version >> 40 & 0xff);
}

// 101: the first that programs may ask for.
__attribute__((constructor(101))) void CheckTorchVersion() {
  const uint64_t found = aoti_torch_abi_version == nullptr ? 0 : aoti_torch_abi_version();
  if (found >> 48 == TORCH_ABI_VERSION >> 48) return;
  base::LogLine(absl::StrCat("warning: built for PyTorch ", TORCH_VERSION, ", and this is PyTorch ",
                             found == 0 ? "of a version before 2.9" : NameOf(found), ": expect crashes"));
}

}  // namespace
}  // namespace torch_lazy::device
