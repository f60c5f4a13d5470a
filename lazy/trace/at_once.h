// SPDX-License-Identifier: Apache-2.0
// When the calls of a thread run at once instead of being recorded.
//
// Note [Calls at once]
// To record a call and to interpret it costs the host more than to run it. Compiled kernels pay for that. A short trace
// that somebody waits for is not paid for until its kernels are there, if it ever gets any. So a thread whose last
// traces were short, waited for, and run op by op, lets its next calls run at once. Now and then it records a few
// traces again, to see whether they are compiled by now: after a number of calls that doubles each time. A long trace
// among many short ones, such as the update at the end of a game, runs at once with them, and is among what is recorded
// again. Each counts against a quarter of the short ones that were wanted. So where long ones come alone, the thread
// records from the next wait on, and needs twice as many short ones the next time. All of it follows from counts. What
// the interpreter and a call at once give is the same: eager's bits.
//
// Long traces may come alone and be new each time, as where values say which rows of a table are added: such a loop
// over a sentence's words is never compiled. So a thread whose last long traces were waited for, run op by op, and new
// to the trie, lets its next calls run at once, too, and one whose small chunks are new (chunks.h). After a number of
// calls that doubles each time, two traces are recorded again.
//
// Note [Handed over]
// A pool's thread writes one row of a tensor, and the next thread another row. Each would find the row of the one
// before pending, and run a trace of one call. So a thread whose last traces were short, and run by other threads that
// use what it wrote, lets calls run at once that only write, and exactly (row.h), while it has nothing pending. All
// other calls are recorded. What such calls leave are the same bits however they run, so they may run at once on every
// device, and for deterministic programs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lazy/host/patience.h"

namespace torch_lazy::lazy {

// Of one thread; a trace hands it on to the next.
class AtOnce {
 public:
  static constexpr int kTraces = 32;           // so many in a row before calls run at once ...
  static constexpr int kTracesToSee = 8;       // ... and so many between two times ...
  static constexpr int kMostToSee = 64;        // ... or up to so many, until a long one has come
  static constexpr size_t kShort = 64;         // calls of a trace, or from one wait to the next
  static constexpr int kNewLong = 16;          // long traces in a row, each new ...
  static constexpr int kNewLongToSee = 2;      // ... of which so many come between two times
  static constexpr int64_t kFirstCalls = 512;  // that run at once the first time
  static constexpr int64_t kMostCalls = 1 << 14;
  static constexpr int64_t kMostCallsOfNew = 1 << 17;  // where long traces were new

  // True if the next call shall run at once.
  bool is_on() const { return is_on_; }
  // True if long traces come that were new each time, or some of them are recorded to see whether they still are.
  bool are_new() const { return new_long_ >= kNewLong - kNewLongToSee; }

  // A trace of so many calls was run. `is_new`: the trie did not know it. True if calls should run at once from now on.
  bool Ran(size_t num_calls, bool op_by_op, bool waited, bool is_new) {
    if (!op_by_op) {
      ItPays();
      return false;
    }
    if (num_calls > kShort) {
      patience_.SetBack(kTraces / 4);
      to_see_ = std::min(to_see_, 1);
      if (waited) new_long_ = is_new ? std::min(new_long_ + 1, kNewLong) : 0;
      return new_long_ == kNewLong;
    }
    if (!waited) return false;
    patience_.Run();
    return patience_.IsWorth(kTraces) && (to_see_ == 0 || --to_see_ == 0);
  }

  // They do.
  void Start() {
    is_on_ = true;
    const int64_t most = new_long_ == kNewLong ? kMostCallsOfNew : kMostCalls;
    calls_left_ = std::exchange(next_calls_, std::min(2 * next_calls_, most));
    since_wait_ = 0;
  }

  // They do, since what was recorded has been new for long.
  void StartForNew() {
    new_long_ = kNewLong;
    next_calls_ = std::max(next_calls_, kMostCalls);
    Start();
  }

  // A call runs at once.
  void Call() {
    --calls_left_;
    ++since_wait_;
    if (since_wait_ > static_cast<size_t>(kMostCalls)) Stop();
  }

  // The host waits for a value.
  void Wait() {
    if (new_long_ == kNewLong) {
      since_wait_ = 0;
      if (!is_on_ || calls_left_ > 0) return;
      is_on_ = false;
      new_long_ = kNewLong - kNewLongToSee;
      return;
    }
    if (std::exchange(since_wait_, 0) > kShort) {
      had_long_ = true;
      patience_.SetBack(kTraces / 4);
      if (patience_.runs() == 0) Stop();
    } else if (!patience_.IsWorth(kTraces)) {
      patience_.Run();
    }
    if (!is_on_ || calls_left_ > 0) return;
    is_on_ = false;
    to_see_ = std::exchange(had_long_, false) ? kMostToSee : kTracesToSee;
  }

  // A trace of so many calls was run; by another thread, if it was handed over.
  void WasCut(size_t num_calls, bool handed_over) {
    if (num_calls == 0) return;
    handed_over_ = handed_over && num_calls <= kShort ? std::min(handed_over_ + 1, kTraces) : 0;
  }

  // True if exact writes shall run at once while nothing is pending.
  bool hands_over() const { return handed_over_ == kTraces; }

  // Calls are to be recorded.
  void Stop() {
    if (!is_on_) return;
    ItPays();
    patience_.Disappoint();
    is_on_ = false;
  }

 private:
  // To record does.
  void ItPays() {
    patience_.StartOver();
    to_see_ = 0;
    new_long_ = 0;
    next_calls_ = kFirstCalls;
  }

  bool is_on_ = false;
  bool had_long_ = false;  // since it is
  Patience patience_;      // in short traces that ran op by op
  int to_see_ = 0;         // of these, so many before calls run at once again
  int new_long_ = 0;       // long ones in a row that were new; the most: calls run at once for these
  int handed_over_ = 0;    // short traces in a row
  int64_t next_calls_ = kFirstCalls;
  int64_t calls_left_ = 0;
  size_t since_wait_ = 0;  // calls
};

}  // namespace torch_lazy::lazy
