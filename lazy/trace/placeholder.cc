// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/placeholder.h"

#include <cstdint>

namespace torch_lazy::lazy {
namespace {

// Bits 52 to 55 lie outside of what an operating system hands out, on x86-64 and on ARM64 alike. The rest is the
// storage's own address.
constexpr uintptr_t kUnmapped = uintptr_t{0xf} << 52;

}  // namespace

void* PlaceholderOf(const c10::StorageImpl* storage) {
  return reinterpret_cast<void*>(kUnmapped | reinterpret_cast<uintptr_t>(storage));
}

bool IsPlaceholder(const void* address) { return reinterpret_cast<uintptr_t>(address) >= kUnmapped; }

}  // namespace torch_lazy::lazy
