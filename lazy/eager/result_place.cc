// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/result_place.h"

#include <utility>

namespace torch_lazy::lazy {
namespace {

thread_local const ResultPlace* free_place = nullptr;

}  // namespace

ResultPlace::ResultPlace(const c10::Storage& content, const Geometry& geometry)
    : content_(content), geometry_(geometry) {
  free_place = this;
}

ResultPlace::~ResultPlace() { free_place = nullptr; }

at::Tensor ResultPlace::Take() {
  const ResultPlace* const place = std::exchange(free_place, nullptr);
  return place == nullptr ? at::Tensor() : Alias(place->content_, place->geometry_);
}

}  // namespace torch_lazy::lazy
