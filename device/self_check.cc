// SPDX-License-Identifier: Apache-2.0
// What is looked into before anything of ours runs: PyTorch's version, and that a storage asks its hook.
//
// Where a check fails, Python's import raises the sentence, and each call on the device does; PyTorch itself stays as
// it is. The engine looks at its own (engine.cc). Where a symbol is missing the dynamic linker has complained already,
// in its own words; Python and CMake compare versions before they load or link anything.
#include "device/self_check.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/version.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "torch_compat/try_hook.h"

extern "C" __attribute__((weak)) uint64_t aoti_torch_abi_version();  // there since 2.9

namespace torch_lazy::device {
namespace {

uint64_t VersionFound() { return aoti_torch_abi_version == nullptr ? 0 : aoti_torch_abi_version(); }

std::string NameOf(uint64_t version) {
  if (version == 0) return "of a version before 2.9";
  return absl::StrCat(version >> 56, ".", version >> 48 & 0xff, ".", version >> 40 & 0xff);
}

bool IsOurVersion() { return VersionFound() >> 48 == TORCH_ABI_VERSION >> 48; }

// 101: the first that programs may ask for. What comes next may crash before anybody can be told.
__attribute__((constructor(101))) void CheckTorchVersion() {
  if (!IsOurVersion()) base::LogLine(absl::StrCat("warning: ", WhyUnfit()));
}

}  // namespace

std::string SaySoOfTorch(const char* what) {
  return absl::StrCat("built for PyTorch ", TORCH_VERSION, ", and this is PyTorch ", NameOf(VersionFound()), what,
                      ": install the one it was built for, or build torch_lazy anew");
}

const std::string& WhyUnfit() {
  static const auto* const why = new std::string([]() -> std::string {
    if (!IsOurVersion()) return SaySoOfTorch("");
    if (!torch_compat::HookIsAsked()) return SaySoOfTorch(", whose storages do not ask before they are written");
    return "";
  }());
  return *why;
}

}  // namespace torch_lazy::device
