// SPDX-License-Identifier: Apache-2.0
// Products of matrices by the library that is faster here.
//
// Note [Tuned products]
// at::mm calls MKL. oneDNN, which PyTorch brings along too, needs 10 us more for a call, and for large products 5 to 20 % less
// time on some processors, and half of it where a few rows meet a large matrix. So a large product's first 24 runs take turns, on the program's own data; then the one whose
// fastest run was faster is taken, and kept on disk for other processes. Both are right, but round differently: where
// deterministic algorithms are asked for nothing is timed, and those of 30 million operations or more are oneDNN's. With
// LAZY_DISABLE=autotune there is only MKL.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "lazy/geometry.h"

namespace torch_lazy::lazy {

class TunedProduct {
 public:
  // The one for all products like this; null if it is MKL's. result = x y, for each batch if there are three dims.
  static TunedProduct* For(const Geometry& x, const Geometry& y, const Geometry& result, bool deterministic);

  // Tensors of the CPU with these geometries.
  void Run(const at::Tensor& x, const at::Tensor& y, at::Tensor* result);

 private:
  enum Library : int { kMkl, kOneDnn, kUnknown };
  static constexpr int kRuns = 24;

  explicit TunedProduct(std::string key);
  explicit TunedProduct(Library winner) : winner_(winner) {}
  static void Multiply(Library library, const at::Tensor& x, const at::Tensor& y, at::Tensor* result);
  void AddRun(Library library, double seconds);

  const std::string key_;
  std::atomic<Library> winner_{kUnknown};
  std::atomic<int> begun_{0};
  std::mutex lock_;  // over what follows
  int done_ = 0;
  std::array<double, 2> fastest_;  // seconds, of each library
};

}  // namespace torch_lazy::lazy
