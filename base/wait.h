// SPDX-License-Identifier: Apache-2.0
// Waits of the program for threads of ours, which it may break off.
#pragma once

#include "absl/time/time.h"

namespace torch_lazy::base {

// While one lives, the thread's waits ask `interrupted` now and then, holding no lock of ours,
// until it says yes once: then none of them waits.
class Interruptible {
 public:
  explicit Interruptible(bool (*interrupted)());
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

 private:
  friend bool MustStopWaiting();
  bool (*const interrupted_)();
  bool was_interrupted_ = false;
  Interruptible* const former_;
};

// How long to wait before MustStopWaiting is asked again.
inline constexpr absl::Duration kWaitTurn = absl::Milliseconds(50);

// True if the program is interrupted, or exits, when what is waited for may never come.
bool MustStopWaiting();

}  // namespace torch_lazy::base
