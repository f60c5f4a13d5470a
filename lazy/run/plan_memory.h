// SPDX-License-Identifier: Apache-2.0
// What the buffers of a plan are in one run.
#pragma once

#include <utility>
#include <vector>

#include "lazy/lower/lowered_trace.h"
#include "lazy/trace/trace.h"

#include "codegen/plan/plan.h"

namespace torch_lazy::lazy {

// What lies there at a time in a run, at most, parameters included. `size_bytes`: of each buffer.
size_t PeakBytes(const codegen::Plan& plan, const std::vector<size_t>& size_bytes);

// The contents of the trace's slots move in, and what is no output moves back at the end, be it an exception, with the
// bytes that were saved.
class PlanMemory {
 public:
  // `read`: buffers of parameters that are not overwritten unread.
  PlanMemory(const codegen::Plan& plan, const LoweredTrace& lowered, const std::vector<size_t>& size_bytes,
             const std::vector<int32_t>& read, Trace* trace);
  ~PlanMemory();
  PlanMemory(const PlanMemory&) = delete;
  PlanMemory& operator=(const PlanMemory&) = delete;

  c10::Storage& Content(int32_t buffer);  // allocated if there is none
  void* Address(int32_t buffer) { return Content(buffer).unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get(); }
  void Set(int32_t buffer, c10::Storage content);
  bool IsFixed(int32_t buffer) const { return is_fixed_[buffer]; }
  void Free(int32_t buffer) {
    if (!is_fixed_[buffer]) contents_[buffer] = c10::Storage();
  }
  // From now on the buffer stays here: what is set and lies elsewhere is copied, and it is not freed.
  void Fix(int32_t buffer, c10::Storage content);
  void Save(int32_t buffer);       // unless a run is only captured, so that there is nothing to undo
  void Keep() { saved_.clear(); }  // what has been written is right

  std::vector<double> numbers;  // per scalar of the graph
  bool is_captured = false;

 private:
  template <typename Do>
  void ForEachParam(const Do& run);

  const codegen::Plan& plan_;
  const LoweredTrace& lowered_;
  const std::vector<size_t>& size_bytes_;
  Trace& trace_;
  std::vector<c10::Storage> contents_;  // null until first needed
  std::vector<bool> is_fixed_;
  std::vector<std::pair<int32_t, c10::Storage>> saved_;
};

}  // namespace torch_lazy::lazy
