// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda_emulator/wrap.h"

#include <utility>
#include <vector>

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
  ONE, MANY, FEW, EXACT, __start_shared_NAME, __stop_shared_NAME, WAITS};
)";

constexpr char kByValue[] = "[](LazyBlock* b, const void* a) { lazy_block = b; lazy_call_one(lazy_NAME::ENTRY, a); }";
constexpr char kByTable[] =
    "[](LazyBlock* b, const void* t, const int* f, int n) { lazy_block = b; lazy_call_many(lazy_NAME::ENTRY, t, f, n); "
    "}";

// The names of all intrinsics that wait.
bool Waits(const std::string& text) { return absl::StrContains(text, "__sync") || absl::StrContains(text, "_sync("); }

}  // namespace

std::string WrappedName(const std::string& kernel) { return absl::StrCat("emulated_", kernel); }

codegen::Kernel WrapForCpu(const codegen::Kernel& kernel) {
  const auto entry = [&kernel](bool is_there, const char* call, const char* ending) {
    return is_there ? absl::StrReplaceAll(call, {{"ENTRY", absl::StrCat(kernel.name, ending)}}) : "nullptr";
  };
  const std::vector<std::pair<absl::string_view, std::string>> entries = {
      {"ONE", entry(kernel.entries.one, kByValue, "")},
      {"MANY", entry(kernel.entries.many, kByTable, "_many")},
      {"FEW", entry(kernel.entries.few, kByValue, "_few")},
      {"EXACT", entry(kernel.exact.extent >= 0, kByValue, "_exact")},
      {"WAITS", Waits(kernel.source) ? "true" : "false"}};
  const auto named = [&](const char* text) {
    return absl::StrReplaceAll(absl::StrReplaceAll(text, entries), {{"NAME", kernel.name}});
  };
  codegen::Kernel wrapped = kernel;
  wrapped.name = WrappedName(kernel.name);
  wrapped.source = absl::StrCat("#ifndef LAZY_CUDA_EMULATOR\n#define LAZY_CUDA_EMULATOR\n", cuda_emulator::kBlockText,
                                kPrelude, "#endif\n", named(kShared), "#line 0\n", InNamespace(kernel), named(kSymbol));
  return wrapped;
}

}  // namespace torch_lazy::backends
