// SPDX-License-Identifier: Apache-2.0
// Products of matrices by the algorithm of cuBLASLt that is fastest here.
//
// ATen takes the one that the library's heuristics name first, which for some sizes is 10 % slower than another. So the second
// run of a large product tries the first eight, and ATen's own way, on the program's own data, as a graph replays them (some begin
// with another node); the fastest is taken if it needs less than 97 % of ATen's time, and is kept on disk for other processes. All
// are right, but may round differently: where deterministic algorithms are asked for nothing is tried, as with LAZY_DISABLE=autotune.
#pragma once

#include <mutex>
#include <string>

#include "lazy/cuda_products.h"
#include "lazy/geometry.h"

namespace torch_lazy::lazy {

class TunedCudaProduct {
 public:
  // The one for all products like this; null if there is nothing to choose. `bias` without dims: none.
  static TunedCudaProduct* For(const Geometry& x, const Geometry& y, const Geometry& bias, const Geometry& result, bool is_relu);

  // By this library; `key` says which products.
  TunedCudaProduct(const CudaProducts& products, const std::string& key);

  // Multiplies, by `atens` where that is faster. While a graph is captured, nothing is tried.
  void Run(const ProductTensors& tensors, const std::function<void()>& atens);

 private:
  enum class State { kNew, kSeen, kAtens, kChosen };

  void Begin(const ProductTensors& tensors);
  void Tune(const ProductTensors& tensors, const std::function<void()>& atens);

  const CudaProducts& products_;
  const std::string key_;
  std::mutex lock_;  // over what follows
  State state_ = State::kNew;
  void* product_ = nullptr;
};

}  // namespace torch_lazy::lazy
