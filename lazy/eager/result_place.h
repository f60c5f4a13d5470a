// SPDX-License-Identifier: Apache-2.0
// Where the next ATen call had better leave its result.
//
//   const ResultPlace place(content, geometry);
//   call();  // a kernel that can write there asks ResultPlace::Take()
//
// A CUDA graph leaves its results at fixed addresses. ATen's operators make their results in fresh memory, from which
// they would have to be copied at each replay.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "lazy/eager/geometry.h"

namespace torch_lazy::lazy {

// For calls of this thread while one lives. Both arguments must outlive the object.
class ResultPlace {
 public:
  ResultPlace(const c10::Storage& content, const Geometry& geometry);
  ~ResultPlace();
  ResultPlace(const ResultPlace&) = delete;
  ResultPlace& operator=(const ResultPlace&) = delete;

  // A tensor there, for the one call that asks first; undefined if there is no such place.
  static at::Tensor Take();

 private:
  const c10::Storage& content_;
  const Geometry& geometry_;
};

}  // namespace torch_lazy::lazy
