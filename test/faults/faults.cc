// SPDX-License-Identifier: Apache-2.0
// libtorch_lazy_faults.so: makes places of base/faults.h fail. Opened, for all to see, before libtorch_lazy.so is.
#include <atomic>
#include <cstdint>

namespace {
std::atomic<int64_t> places_before_fault{-1};
}

extern "C" {

// After so many more places that may fail, one does; negative: none.
void torch_lazy_fail_after(int64_t places) { places_before_fault.store(places, std::memory_order_relaxed); }

// True if a fault was asked for that has not come yet.
bool torch_lazy_fault_pending() { return places_before_fault.load(std::memory_order_relaxed) >= 0; }

bool torch_lazy_must_fail() { return torch_lazy_fault_pending() && places_before_fault.fetch_sub(1, std::memory_order_relaxed) == 0; }

}
