// SPDX-License-Identifier: Apache-2.0
// Use of the device after fork().
//
// A child has a copy of the pending traces but none of the threads (OpenMP's workers among them) that its parent had,
// so work on the device would hang there. A child of a parent that has used the device gets an error at its first use.
#pragma once

#include <atomic>

#include <c10/macros/Macros.h>

namespace torch_lazy::device {

enum class ForkState : char { kUnused, kUsed, kForkedAfterUse };
extern std::atomic<ForkState> fork_state;

void FirstUseOrThrow();

// Called by every kernel that may run or record work.
inline void CheckFork() {
  if (C10_UNLIKELY(fork_state.load(std::memory_order_relaxed) != ForkState::kUsed)) FirstUseOrThrow();
}

}  // namespace torch_lazy::device
