// SPDX-License-Identifier: Apache-2.0
// When a plan is worth a CUDA graph.
//
// Note [Worth a CUDA graph]
// A capture takes the host as long as some runs by launches, and a replay saves the most of one. So a plan is captured
// - at its third run, if its last runs were close together, as in a loop: at most 64 runs of plans by launches from the
//   first of three to the third. Replays do not count: a prompt is close to the next one, once the tokens in between
//   are replayed. That is on credit: the account (ledger.h) must have something left. Token by token over a growing
//   cache, each length is a plan of its own, whose runs are far apart;
// - else once it has run 32 times, and so often that twice the capture would have been saved: what came so often will
//   come as often again. A CUDA graph that is dropped before its replays have paid for it makes its plan wait twice as
//   long the next time.
#pragma once

#include <cstdint>

#include "lazy/host/ledger.h"
#include "lazy/host/patience.h"

namespace torch_lazy::lazy {

class CudaGraphChoice {
 public:
  explicit CudaGraphChoice(Account* account) : account_(*account) {}

  // A run by launches is due, at the time `now`, counted in such runs of plans that could have CUDA graphs. True: it
  // had better be captured.
  bool Ask(int64_t now);
  // Whether a CUDA graph that has become useless, since addresses have changed, may be captured anew in the same run.
  bool MayRepeat() const { return account_.MayTry(); }
  // Whether replays of the last CUDA graph have saved what its capture took.
  bool HasPaid() const { return saved_ >= captured_; }

  // It asked too early: asks again after twice as many runs.
  void Postpone() { patience_.Disappoint(); }

  // What took so many seconds.
  void Launched(double seconds);
  void Captured(double seconds);
  void Replayed(double seconds);
  void Dropped();

 private:
  static constexpr int64_t kFirst = 3;  // runs
  static constexpr int64_t kClose = 64;
  static constexpr int64_t kSeldom = 32;  // runs

  Account& account_;
  Patience patience_;                    // for runs since there was no CUDA graph
  int64_t last_ = 0, last_but_one_ = 0;  // when these were
  double launched_ = 0, replayed_ = 0;   // seconds of the fastest; 0: not known
  double captured_ = 0;                  // seconds of the last
  double saved_ = 0;                     // seconds since then
};

}  // namespace torch_lazy::lazy
