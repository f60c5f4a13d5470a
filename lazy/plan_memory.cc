// SPDX-License-Identifier: Apache-2.0
#include "lazy/plan_memory.h"

#include <algorithm>

#include "lazy/eager_device.h"
#include "lazy/memory.h"

namespace torch_lazy::lazy {

template <typename Do>
void PlanMemory::ForEachParam(const Do& run) {
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].kind != codegen::BufferSpec::Kind::kParam) continue;
    run(&trace_.slots[lowered_.param_slots[plan_.buffers[b].index]].content, &contents_[b]);
  }
}

PlanMemory::PlanMemory(const codegen::Plan& plan, const LoweredTrace& lowered, const std::vector<size_t>& size_bytes, Trace* trace)
    : plan_(plan), lowered_(lowered), size_bytes_(size_bytes), trace_(*trace), contents_(plan.buffers.size()),
      is_fixed_(plan.buffers.size()) {
  ForEachParam([](c10::Storage* slot, c10::Storage* content) { *content = std::move(*slot); });
}

PlanMemory::~PlanMemory() {
  for (const auto& [buffer, saved] : saved_) CopyContent(Content(buffer), saved, saved.nbytes());
  ForEachParam([](c10::Storage* slot, c10::Storage* content) {
    if (!*slot) *slot = std::move(*content);
  });
}

c10::Storage& PlanMemory::Content(int32_t buffer) {
  c10::Storage& content = contents_[buffer];
  if (!content) content = NewContent(size_bytes_[buffer]);
  return content;
}

void PlanMemory::Set(int32_t buffer, c10::Storage content) {
  if (is_fixed_[buffer]) {
    CopyContent(Content(buffer), content, std::min(Content(buffer).nbytes(), content.nbytes()));
  } else {
    contents_[buffer] = std::move(content);
  }
}

void PlanMemory::Fix(int32_t buffer, c10::Storage content) {
  contents_[buffer] = std::move(content);
  is_fixed_[buffer] = true;
}

void PlanMemory::Save(int32_t buffer) {
  if (is_captured) return;
  c10::Storage saved = NewContent(Content(buffer).nbytes());
  CopyContent(saved, Content(buffer), saved.nbytes());
  saved_.emplace_back(buffer, std::move(saved));
}

}  // namespace torch_lazy::lazy
