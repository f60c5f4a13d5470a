// SPDX-License-Identifier: Apache-2.0
// Faults on demand, for tests of what is left after one.
//
//   if (base::MustFail()) return nullptr;
//
// Stands where the machine may fail: memory is asked for, a call runs, a compiler ends. One relaxed load where none is asked for.
#pragma once

#include <atomic>
#include <cstdint>

namespace torch_lazy::base {

namespace internal {
inline std::atomic<int64_t> places_before_fault{-1};
}  // namespace internal

// After so many more places that may fail, one does; negative: none.
inline void FailAfter(int64_t places) { internal::places_before_fault.store(places, std::memory_order_relaxed); }

// True if a fault was asked for that has not come yet.
inline bool FaultPending() { return internal::places_before_fault.load(std::memory_order_relaxed) >= 0; }

inline bool MustFail() { return FaultPending() && internal::places_before_fault.fetch_sub(1, std::memory_order_relaxed) == 0; }

}  // namespace torch_lazy::base
