// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/plan_memory.h"

#include <algorithm>

#include "base/log.h"
#include "base/metrics.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/memory.h"
#include "lazy/trace/unwritten.h"

namespace torch_lazy::lazy {

size_t PeakBytes(const codegen::Plan& plan, const std::vector<size_t>& size_bytes) {
  std::vector<bool> is_there(plan.buffers.size());
  size_t now = 0, peak = 0;
  const auto put = [&](int32_t buffer) {
    if (buffer < 0 || is_there[buffer]) return;
    is_there[buffer] = true;
    now += size_bytes[buffer];
  };
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].kind == codegen::BufferSpec::Kind::kParam) put(static_cast<int32_t>(b));
  }
  for (const codegen::Step& step : plan.steps) {
    std::for_each(step.results.begin(), step.results.end(), put);
    for (const codegen::Instance& instance : step.instances)
      std::for_each(instance.written.begin(), instance.written.end(), put);
    peak = std::max(peak, now);
    for (const int32_t buffer : step.frees) {
      if (is_there[buffer]) now -= size_bytes[buffer];
      is_there[buffer] = false;
    }
  }
  return peak;
}

template <typename Do>
void PlanMemory::ForEachParam(const Do& run) {
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].kind != codegen::BufferSpec::Kind::kParam) continue;
    run(&ContentAt(lowered_, lowered_.param_slots[plan_.buffers[b].index], &trace_), &contents_[b]);
  }
}

PlanMemory::PlanMemory(const codegen::Plan& plan, const LoweredTrace& lowered, const std::vector<size_t>& size_bytes,
                       const std::vector<int32_t>& read, Trace* trace)
    : plan_(plan),
      lowered_(lowered),
      size_bytes_(size_bytes),
      trace_(*trace),
      contents_(plan.buffers.size()),
      is_fixed_(plan.buffers.size()) {
  for (const int32_t b : read) {  // first: this may fail, and then the trace keeps what it has
    const int32_t at = lowered_.param_slots[plan_.buffers[b].index];
    if (at < 0) continue;
    const Trace::Slot& slot = trace_.slots[static_cast<size_t>(at)];
    // What is not filled is made when it is first needed: within a capture, in the CUDA graphs' own memory.
    if (!slot.content && slot.unwritten != at::ScalarType::Undefined)
      contents_[b] = UnwrittenContent(size_bytes_[b], slot.unwritten);
  }
  ForEachParam([](c10::Storage* slot, c10::Storage* content) {
    if (*slot) *content = std::move(*slot);
  });
}

PlanMemory::~PlanMemory() {
  try {
    for (const auto& [buffer, saved] : saved_) CopyContent(Content(buffer), saved, saved.nbytes());
  } catch (const std::exception& error) {  // a device that is lost: nothing on it can be read either
    LAZY_LOG(1, "what a call that failed has overwritten stays so: ", error.what());
  }
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
  if (!is_fixed_[buffer]) {
    contents_[buffer] = std::move(content);
  } else if (content.unsafeGetStorageImpl() != Content(buffer).unsafeGetStorageImpl()) {
    base::Count(base::Counter::kResultsCopied);
    CopyContent(Content(buffer), content, std::min(Content(buffer).nbytes(), content.nbytes()));
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
