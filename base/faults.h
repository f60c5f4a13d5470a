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
inline std::atomic<int64_t> kernels_to_spoil{0};
inline std::atomic<int64_t> kernels_before_spoilt{0};
}  // namespace internal

// After so many more places that may fail, one does; negative: none.
inline void FailAfter(int64_t places) { internal::places_before_fault.store(places, std::memory_order_relaxed); }

// True if a fault was asked for that has not come yet.
inline bool FaultPending() { return internal::places_before_fault.load(std::memory_order_relaxed) >= 0; }

// The compiler is to refuse so many kernels, after as many that are left as they are.
inline void SpoilKernels(int64_t number, int64_t after) {
  internal::kernels_to_spoil.store(number, std::memory_order_relaxed);
  internal::kernels_before_spoilt.store(after, std::memory_order_relaxed);
}

// Asked once for each kernel that a compiler is to be given: true if its text is to be made wrong.
inline bool MustSpoilKernel() {
  if (internal::kernels_to_spoil.load(std::memory_order_relaxed) <= 0) return false;
  if (internal::kernels_before_spoilt.fetch_sub(1, std::memory_order_relaxed) > 0) return false;
  return internal::kernels_to_spoil.fetch_sub(1, std::memory_order_relaxed) > 0;
}
inline constexpr char kSpoiltText[] = "\n#error a fault that was asked for\n";

inline bool MustFail() { return FaultPending() && internal::places_before_fault.fetch_sub(1, std::memory_order_relaxed) == 0; }

}  // namespace torch_lazy::base
