// SPDX-License-Identifier: Apache-2.0
// A launch among a plan's steps, bound to sizes: its instances, but for their pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "backends/backend.h"
#include "codegen/plan/plan.h"
#include "lazy/run/plan_memory.h"

namespace torch_lazy::lazy {

class BoundLaunch {
 public:
  // Nothing if the instance has no iterations for such sizes.
  void Add(const codegen::Instance& instance, const codegen::Plan& plan, const backends::Module& module,
           absl::Span<const int64_t> symbols);

  // The plan's former step is a launch, too.
  void Follow();

  void Run(PlanMemory* memory) const;

  size_t ArgumentBytes() const;  // for Backend::BeginRecord
  double Cost() const;           // nanoseconds of one thread
  // The graph's scalars that it takes, one after the other.
  const std::vector<int32_t>& scalars() const { return scalars_; }

 private:
  // The instances' pointers stand one after the other.
  std::vector<int32_t> buffers_, scalars_;
  std::vector<int64_t> offset_bytes_;  // per buffer
  std::vector<int64_t> extents_;
  std::vector<backends::BoundInstance> instances_;  // all but the pointers
};

}  // namespace torch_lazy::lazy
