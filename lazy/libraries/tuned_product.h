// SPDX-License-Identifier: Apache-2.0
// Products of matrices by the library that is faster here.
//
// Note [Tuned products]
// at::mm calls MKL. oneDNN, which PyTorch brings along too, needs more time for a call, and on some processors less for
// large products, above all where a few rows meet a large matrix. Which one is faster is tried on the program's own
// data, and kept on disk for other processes. Both are right, but round differently: where deterministic algorithms are
// asked for nothing is timed, and those of 30 million operations or more are oneDNN's. With LAZY_DISABLE=autotune there
// is only MKL.
// - Sizes that are similar (similar_sizes.h) share what was found: one of them that comes again takes turns between the
//   libraries, eight of each or until oneDNN is seen to be behind, and decides for all by the fastest. Small products
//   do so in one run.
// - oneDNN makes code for each size, which takes as long as hundreds of small products. So a size takes it from the run
//   on by which it would have paid for that: a number that is kept with the choice, so that it does not depend on times
//   any more. A size that does not come again takes MKL. So do those after the first 512 sizes, since oneDNN keeps code
//   for 1024 and then makes it anew.
// - All that is tried is paid from an account (ledger.h). oneDNN's first product in a process takes tens of
//   milliseconds. Once the disk knows how long, a process tries nothing before it may spend that. What a process has
//   left when it ends is the next one's, so that programs of a second or two decide within a few runs.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "lazy/eager/geometry.h"

namespace torch_lazy::lazy {

// What products of similar sizes take.
class ProductChoice {
 public:
  static constexpr int kNever = 1 << 30, kUnknown = -1, kAlways = -2;

  // `key` says which products. Another process may know.
  explicit ProductChoice(std::string key);
  // oneDNN, for all and from the first run on.
  ProductChoice() : first_run_(kAlways) {}

  // From which run of a size on it takes oneDNN; kNever: MKL, kUnknown: not decided, kAlways: oneDNN, whatever it
  // costs.
  int first_run() const { return first_run_.load(std::memory_order_relaxed); }
  // True if the size that asks is to be tried. Few are, since the rest can wait for them.
  bool TakeTrial() {
    return trials_.load(std::memory_order_relaxed) < kMostTrials &&
           trials_.fetch_add(1, std::memory_order_relaxed) < kMostTrials;
  }
  // Seconds for an operation by each library, and for oneDNN's code.
  void Decide(double mkl, double onednn, double making, double operations);
  // Seconds that oneDNN saves for an operation; 0: not known.
  double saves() const { return saves_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kMostTrials = 2;
  const std::string key_;
  std::atomic<int> first_run_{kUnknown}, trials_{0};
  std::atomic<double> saves_{0};
};

// Products of one size.
class TunedProduct {
 public:
  // The one for all products like this; null if it is MKL's. result = x y, for each batch if there are three dims.
  static TunedProduct* For(const Geometry& x, const Geometry& y, const Geometry& result, bool deterministic);

  // Tensors of the CPU with these geometries.
  void Run(const at::Tensor& x, const at::Tensor& y, at::Tensor* result);

 private:
  enum Library : int { kMkl, kOneDnn };

  TunedProduct(ProductChoice* choice, double operations) : choice_(*choice), operations_(operations) {}
  void Multiply(Library library, const at::Tensor& x, const at::Tensor& y, at::Tensor* result);
  bool IsTrial(int64_t run);
  bool HasPlace();
  void Try(Library library, const at::Tensor& x, const at::Tensor& y, at::Tensor* result);
  double Time(Library library, const at::Tensor& x, const at::Tensor& y, at::Tensor* result);
  bool TryDecide();

  ProductChoice& choice_;
  const double operations_;
  std::atomic<int64_t> runs_{0};
  std::atomic<int> place_{-1};  // among the sizes that oneDNN has code for; -1: not asked for
  std::mutex lock_;             // over what follows, for a whole try
  bool is_trial_ = false;
  std::array<int, 2> tries_{};
  std::array<double, 2> fastest_{};  // seconds, of each library; of oneDNN's without the first
  double first_ = 0;                 // seconds of oneDNN's first
};

}  // namespace torch_lazy::lazy
