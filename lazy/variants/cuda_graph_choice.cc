// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/cuda_graph_choice.h"

#include <algorithm>
#include <utility>

namespace torch_lazy::lazy {
namespace {

double Faster(double known, double seconds) { return known == 0 ? seconds : std::min(known, seconds); }

}  // namespace

bool CudaGraphChoice::Ask(int64_t now) {
  patience_.Run();
  const int64_t last_but_one = std::exchange(last_but_one_, std::exchange(last_, now));
  if (!patience_.IsWorth(kFirst)) return false;
  if (now - last_but_one <= kClose && account_.MayTry()) return true;
  const bool pays = replayed_ == 0 || static_cast<double>(patience_.runs()) * (launched_ - replayed_) >=
                                          2 * captured_ * static_cast<double>(patience_.times());
  return patience_.IsWorth(kSeldom) && pays;
}

void CudaGraphChoice::Launched(double seconds) { launched_ = Faster(launched_, seconds); }

void CudaGraphChoice::Captured(double seconds) {
  captured_ = seconds;
  saved_ = 0;
  account_.Spend(seconds);
}

void CudaGraphChoice::Replayed(double seconds) {
  replayed_ = Faster(replayed_, seconds);
  saved_ += std::max(0.0, launched_ - replayed_);
  account_.Save(launched_ - replayed_);
}

void CudaGraphChoice::Dropped() { HasPaid() ? patience_.Reward() : patience_.Disappoint(); }

}  // namespace torch_lazy::lazy
