// SPDX-License-Identifier: Apache-2.0
// A product of matrices among a plan's steps, bound to sizes: by the library that is fastest, or as ATen would.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "codegen/plan/plan.h"
#include "lazy/eager/geometry.h"
#include "lazy/libraries/tuned_cuda_product.h"
#include "lazy/libraries/tuned_product.h"
#include "lazy/run/plan_memory.h"

namespace torch_lazy::lazy {

struct BoundProduct {
  Geometry x, y, result;
  Geometry bias;                           // without dims: there is none
  TunedProduct* tuned = nullptr;           // null: ATen's own way
  TunedCudaProduct* tuned_cuda = nullptr;  // null: the same
  bool is_small = false;                   // no team works on it: a thread's first has every region cost more
};

BoundProduct BindProduct(const codegen::Step& step, absl::Span<const int64_t> symbols);

// From now on it is run by the library that is faster.
void Tune(const codegen::Step& step, bool deterministic, BoundProduct* product);

void RunProduct(const BoundProduct& product, const codegen::Step& step, PlanMemory* memory);

}  // namespace torch_lazy::lazy
