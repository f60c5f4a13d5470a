// SPDX-License-Identifier: Apache-2.0
// libtorch_lazy_faults.so: makes places of base/faults.h fail, and spoils kernels. Opened, for all to see, before
// libtorch_lazy.so is.
#include <atomic>
#include <cstdint>

namespace {
std::atomic<int64_t> places_before_fault{-1};
std::atomic<int64_t> kernels_to_spoil{0};
std::atomic<int64_t> kernels_before_spoilt{0};
}  // namespace

extern "C" {

// After so many more places that may fail, one does; negative: none.
void torch_lazy_fail_after(int64_t places) { places_before_fault.store(places, std::memory_order_relaxed); }

// True if a fault was asked for that has not come yet.
bool torch_lazy_fault_pending() { return places_before_fault.load(std::memory_order_relaxed) >= 0; }

bool torch_lazy_must_fail() {
  return torch_lazy_fault_pending() && places_before_fault.fetch_sub(1, std::memory_order_relaxed) == 0;
}

// The compiler is to refuse so many kernels, after as many that are left as they are.
void torch_lazy_spoil_kernels(int64_t number, int64_t after) {
  kernels_to_spoil.store(number, std::memory_order_relaxed);
  kernels_before_spoilt.store(after, std::memory_order_relaxed);
}

bool torch_lazy_must_spoil_kernel() {
  if (kernels_to_spoil.load(std::memory_order_relaxed) <= 0) return false;
  if (kernels_before_spoilt.fetch_sub(1, std::memory_order_relaxed) > 0) return false;
  return kernels_to_spoil.fetch_sub(1, std::memory_order_relaxed) > 0;
}
}
