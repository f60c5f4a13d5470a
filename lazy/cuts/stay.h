// SPDX-License-Identifier: Apache-2.0
// Which traces of a program's thread run there, since what it leaves to the library's thread is not begun.
//
// A team of OpenMP that spins keeps the library's thread from its processor (lazy/host/run_thread.h). Each run that is
// taken back has cost a millisecond. So the next 64 traces that somebody waits for run in the program, then one asks
// the thread again. Each time in vain makes them twice as many; 64 that are not taken back show that the thread is of
// use.
#pragma once

#include "lazy/host/patience.h"

namespace torch_lazy::lazy {

class Stay {
 public:
  bool is_on() const { return is_on_; }

  // A run was taken back.
  void Begin() {
    is_on_ = true;
    patience_.Disappoint();
  }

  // A trace that somebody waits for. True if it stays in the program.
  bool Ask() {
    if (!is_on_) {
      if (++left_to_thread_ == 2 * kTraces) patience_.Reward();
      return false;
    }
    patience_.Run();
    if (!patience_.IsWorth(kTraces)) return true;
    is_on_ = false;
    left_to_thread_ = 0;
    return false;
  }

 private:
  static constexpr int kTraces = 32;  // twice as many, the first time
  bool is_on_ = false;
  Patience patience_;  // in traces
  int left_to_thread_ = 0;
};

}  // namespace torch_lazy::lazy
