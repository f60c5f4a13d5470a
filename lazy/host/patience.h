// SPDX-License-Identifier: Apache-2.0
// How long to wait before an effort: the one policy for all of them.
//
//   Patience patience;
//   patience.Run();                                // what it takes for granted held once more
//   if (patience.IsWorth(3)) capture a CUDA graph  // the third time in a row
//   patience.Disappoint();                         // it was of no use: the sixth time in a row is next
//
// What came so many times in a row is likely to come again, so an effort begins then. Each one that was of no use makes
// the next one wait twice as long, up to 65536 runs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace torch_lazy::lazy {

class Patience {
 public:
  // One more run in a row.
  void Run() { ++runs_; }
  int64_t runs() const { return runs_; }
  // True after so many runs in a row, or as many times more as there is reason to wait longer.
  bool IsWorth(int64_t runs) const { return runs_ >= std::min(runs * times_, kMost); }
  // How many times as long as at first it takes.
  int64_t times() const { return times_; }

  // So many of the last runs, or as many times more, do not count.
  void SetBack(int64_t runs) { runs_ = std::max<int64_t>(runs_ - std::min(runs * times_, kMost), 0); }
  // The row has ended, before anything was done for it.
  void StartOver() { runs_ = 0; }
  // What was done was of no use.
  void Disappoint() {
    runs_ = 0;
    times_ = std::min(2 * times_, kMost);
  }
  // It was.
  void Reward() {
    runs_ = 0;
    times_ = 1;
  }

 private:
  static constexpr int64_t kMost = 1 << 16;  // runs
  int64_t runs_ = 0;
  int64_t times_ = 1;
};

}  // namespace torch_lazy::lazy
