// SPDX-License-Identifier: Apache-2.0
// What the buffers of a plan are in one run.
#pragma once

#include <utility>
#include <vector>

#include "lazy/lower.h"
#include "lazy/trace.h"

#include "codegen/plan.h"

namespace torch_lazy::lazy {

// The contents of the trace's slots move in, and what is no output moves back at the end, be it an exception, with the bytes
// that were saved. Or all contents stay where they are, from run to run: what is set is copied there, nothing is freed.
class PlanMemory {
 public:
  PlanMemory(const codegen::Plan& plan, const LoweredTrace& lowered, const std::vector<size_t>& size_bytes, Trace* trace);
  PlanMemory(const codegen::Plan& plan, const LoweredTrace& lowered, const std::vector<size_t>& size_bytes, Trace* trace,
             std::vector<c10::Storage> fixed);
  ~PlanMemory();
  PlanMemory(const PlanMemory&) = delete;
  PlanMemory& operator=(const PlanMemory&) = delete;

  c10::Storage& Content(int32_t buffer);  // allocated if there is none
  void* Address(int32_t buffer) { return Content(buffer).unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get(); }
  void Set(int32_t buffer, c10::Storage content);
  void Free(int32_t buffer) {
    if (!is_fixed_) contents_[buffer] = c10::Storage();
  }
  void Save(int32_t buffer);
  void Keep() { saved_.clear(); }  // what has been written is right

  std::vector<double> numbers;  // per scalar of the graph

 private:
  template <typename Do>
  void ForEachParam(const Do& run);

  const codegen::Plan& plan_;
  const LoweredTrace& lowered_;
  const std::vector<size_t>& size_bytes_;
  Trace& trace_;
  const bool is_fixed_ = false;
  std::vector<c10::Storage> contents_;  // null until first needed
  std::vector<std::pair<int32_t, c10::Storage>> saved_;
};

}  // namespace torch_lazy::lazy
