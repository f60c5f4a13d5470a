// SPDX-License-Identifier: Apache-2.0
// What attempts to be faster cost this process, and what they bring: seconds.
//
//   Account& account = AccountOf(Venture::kCudaGraphs);
//   if (account.MayTry()) account.Spend(seconds of a capture);
//   account.Save(seconds that a replay took less);
//
// Timing two libraries, or capturing a CUDA graph, costs time now and saves some at each later run, if there are any.
// So each venture has an account. It begins with a credit, and most get a hundredth of the time that passes; beyond
// that they may spend what they have saved. Then nothing more is tried until more is saved. What was found stays in
// use.
#pragma once

#include <atomic>
#include <cstdint>

namespace torch_lazy::lazy {

enum class Venture { kProducts, kCudaProducts, kConvolutions, kCudaGraphs };

// Thread-safe.
class Account {
 public:
  explicit Account(Venture venture);
  Account(Venture venture, double credit_seconds);

  // True while something is left. An attempt may cost more than that.
  bool MayTry() const;
  // What is not above 0, or no number, counts for nothing.
  void Spend(double seconds);
  void Save(double seconds);
  // What the calling thread has saved so far: a CUDA graph saves at each replay what was saved while it was captured.
  double SavedHere() const;

 private:
  const Venture venture_;
  const int64_t begun_ns_, credit_ns_;
  std::atomic<int64_t> spent_ns_{0}, saved_ns_{0};
};

Account& AccountOf(Venture venture);

// Of a clock that only goes forward.
double SecondsNow();

}  // namespace torch_lazy::lazy
