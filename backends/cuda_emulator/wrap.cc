// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda_emulator/wrap.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "backends/blocks/block_kernel.h"
#include "backends/cuda_emulator/block.h"

namespace torch_lazy::backends {
namespace {

// Shared memory has a section of its own for each kernel, whose ends the linker names.
constexpr char kShared[] = R"(
#undef __shared__
#define __shared__ static __attribute__((section("shared_NAME")))
extern "C" char __start_shared_NAME[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_shared_NAME[] __attribute__((weak, visibility("hidden")));
)";

constexpr char kSymbol[] = R"(
extern "C" { extern const LazyKernel emulated_NAME; }
const LazyKernel emulated_NAME = {
  [](LazyBlock* b, const void* a) { lazy_block = b; lazy_call_one(lazy_NAME::NAME, a); },
  [](LazyBlock* b, const void* t, const int* f, int n) {
    lazy_block = b;
    lazy_call_many(lazy_NAME::NAME_many, t, f, n);
  },
  [](LazyBlock* b, const void* a) { lazy_block = b; lazy_call_one(lazy_NAME::NAMEFEW, a); },
  [](LazyBlock* b, const void* a) { lazy_block = b; lazy_call_one(lazy_NAME::NAMEEXACT, a); },
  __start_shared_NAME, __stop_shared_NAME, WAITS};
)";

// The names of all intrinsics that wait.
bool Waits(const std::string& text) { return absl::StrContains(text, "__sync") || absl::StrContains(text, "_sync("); }

}  // namespace

std::string WrappedName(const std::string& kernel) { return absl::StrCat("emulated_", kernel); }

codegen::Kernel WrapForCpu(const codegen::Kernel& kernel) {
  const auto named = [&kernel](const char* text) {
    return absl::StrReplaceAll(text, {{"NAME", kernel.name},
                                      {"FEW", kernel.takes_few ? "_few" : ""},
                                      {"EXACT", kernel.exact.extent >= 0 ? "_exact" : ""},
                                      {"WAITS", Waits(kernel.source) ? "true" : "false"}});
  };
  codegen::Kernel wrapped = kernel;
  wrapped.name = WrappedName(kernel.name);
  wrapped.source = absl::StrCat("#ifndef LAZY_CUDA_EMULATOR\n#define LAZY_CUDA_EMULATOR\n", cuda_emulator::kBlockText,
                                kPrelude, "#endif\n", named(kShared), "#line 0\n", InNamespace(kernel), named(kSymbol));
  return wrapped;
}

}  // namespace torch_lazy::backends
