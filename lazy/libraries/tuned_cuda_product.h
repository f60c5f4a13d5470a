// SPDX-License-Identifier: Apache-2.0
// Products of matrices by the algorithm of cuBLASLt that is fastest here.
//
// ATen takes the one that the library's heuristics name first, which for some sizes is 10 % slower than another. So a
// later run of large products of similar sizes (similar_sizes.h) tries the first three, and ATen's own way, on the
// program's own data; the first eight if the product is so large that the kernels which have to be loaded are soon paid
// for. Where one is faster, those that are nearly the fastest and ATen's way are tried again as a CUDA
// graph replays them, since some begin with another node. The fastest is taken if it needs less than 97 % of ATen's
// time, by all of these sizes that it can do, and is kept on disk for other processes. All are right, but may round
// differently: where deterministic algorithms are asked for nothing is tried, as with LAZY_DISABLE=autotune. What is
// tried is paid from an account (ledger.h), at a pace: so a step tries a few products, and a plan is captured when none
// of its own is left to be tried.
#pragma once

#include <mutex>
#include <string>

#include "lazy/cuda/products.h"
#include "lazy/eager/geometry.h"

namespace torch_lazy::lazy {

// What products of similar sizes take.
struct CudaProductChoice {
  // `name` says which products.
  explicit CudaProductChoice(std::string name) : key(std::move(name)) {}

  enum class State { kNew, kSeen, kKnown };
  const std::string key;
  std::mutex lock;  // over what follows
  State state = State::kNew;
  std::string word;  // of the algorithm, if it is known
  double saves = 0;  // seconds, at the size that was tried
};

// Products of one size.
class TunedCudaProduct {
 public:
  // The one for all products like this; null if there is nothing to choose. `bias` without dims: none.
  static TunedCudaProduct* For(const Geometry& x, const Geometry& y, const Geometry& bias, const Geometry& result,
                               bool is_relu);

  // By this library; the choice may be other products', too.
  // `most_tried`: how many of the library's algorithms.
  TunedCudaProduct(const CudaProducts& products, CudaProductChoice* choice, size_t most_tried)
      : products_(products), choice_(*choice), most_tried_(most_tried) {}

  // Multiplies, by `atens` where that is faster. While a CUDA graph is captured, nothing is tried.
  void Run(const ProductTensors& tensors, const std::function<void()>& atens);

  // True if a later run may try what is fastest.
  bool AwaitsTrial() const;

 private:
  enum class State { kNew, kWaits, kAtens, kChosen };

  void Prepare(const ProductTensors& tensors, const std::function<void()>& atens);
  void Tune(const ProductTensors& tensors, const std::function<void()>& atens);

  const CudaProducts& products_;
  CudaProductChoice& choice_;
  const size_t most_tried_;
  State state_ = State::kNew;  // guarded by the choice's lock, as is what follows
  void* product_ = nullptr;
};

}  // namespace torch_lazy::lazy
