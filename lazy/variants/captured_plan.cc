// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/captured_plan.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "backends/registry.h"
#include "base/metrics.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/lanes.h"
#include "lazy/host/raise.h"
#include "lazy/trace/unwritten.h"
#include "lazy/variants/captured_numbers.h"

namespace torch_lazy::lazy {
namespace {

// CUDA graphs share memory, so their replays on the main stream are asked for one after the other, in its order.
template <typename Do>
void InOrder(const Do& replay) {
  static auto* const lock = new std::mutex;
  static auto* const streams = new std::map<int, int64_t>;  // of the last replay, per device
  const std::lock_guard<std::mutex> held(*lock);
  const int64_t stream = CurrentStreamId();
  const auto [last, is_first] = streams->try_emplace(EagerDevice().index(), stream);
  if (!is_first && stream != std::exchange(last->second, stream)) WaitForEagerDevice();
  replay();
}

}  // namespace

void CapturedPlan::Drop() {
  if (graph_ != nullptr && lane_ != kMainStream) JoinLanes();  // its memory is given to others
  if (graph_ != nullptr && !is_emulated()) graphs_.destroy(graph_);
  graph_ = nullptr;
  record_.reset();
  emulated_.clear();
}

bool CapturedPlan::HasNumbersOf(const Trace& trace) const {
  const std::vector<c10::IValue> numbers = NumbersOfCalls(plan_, trace);
  return std::equal(numbers.begin(), numbers.end(), numbers_of_calls_.begin(), &IsSame);
}

bool CapturedPlan::DrawsLike(const Trace& trace) const { return LieAlike(draws_, DrawsOf(plan_, trace)); }

const char* CapturedPlan::NoteNumbers(const Trace& trace) {
  numbers_of_calls_ = NumbersOfCalls(plan_, trace);
  for (const c10::IValue& number : numbers_of_calls_) {
    if (!IsSame(number, number)) return "a call takes a number from the host's memory";
  }
  draws_ = DrawsOf(plan_, trace);
  return FirstOf(draws_) ? nullptr : "its calls draw random numbers of several seeds";
}

std::string CapturedPlan::Capture(Trace* trace, CudaGraphMemory* memory, int lane) {
  lane_ = lane;
  std::vector<c10::Storage> contents = memory->Contents(trace);
  const auto take_back = absl::MakeCleanup([&] { memory->PutBack(std::move(contents), trace); });
  try {
    PlanMemory of_run(plan_.plan(), plan_.lowered(), plan_.size_bytes(), plan_.uses().read, trace);
    of_run.numbers = ScalarsOf(plan_.lowered(), *trace);
    memory->Fix(&of_run);
    memory->TellOfHomes(lane);
    if (!is_emulated()) return CaptureSteps(trace, &of_run);
    EmulateCapture(*memory, &of_run);
  } catch (const std::exception& error) {  // there is no memory for what outlives a replay
    return error.what();
  }
  return "";
}

std::string CapturedPlan::CaptureSteps(Trace* trace, PlanMemory* memory) {
  backends::Backend& backend = backends::Get();
  const std::lock_guard<std::mutex> nobody_draws(DrawMutex());
  absl::StatusOr<std::unique_ptr<backends::LaunchRecord>> record = backend.BeginRecord(plan_.LaunchBytes());
  RaiseIfError(record.status());
  record_ = *std::move(record);
  memory->is_captured = true;
  const LeaveUnwritten unwritten;
  std::string failure;
  void* graph = nullptr;
  savings_ = {};
  try {
    const Savings::Noting noting(&savings_);
    graph = graphs_.begin(lane_);
    const CapturedDraws draws{*FirstOf(draws_), graphs_.seek, graph};
    captured_draws = &draws;
    const auto end_of_draws = absl::MakeCleanup([] { captured_draws = nullptr; });
    for (size_t step = 0; step < plan_.plan().steps.size(); ++step) plan_.RunStep(step, trace, memory);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  backend.EndRecord();
  try {
    if (graph != nullptr) graphs_.end(graph);
    graph_ = graph;
  } catch (const std::exception& error) {
    failure += error.what();
  }
  if (!failure.empty()) Drop();
  return failure;
}

void CapturedPlan::EmulateCapture(const CudaGraphMemory& of, PlanMemory* memory) {
  emulated_.clear();
  for (size_t b = 0; b < plan_.plan().buffers.size(); ++b)
    emulated_.push_back(memory->Content(static_cast<int32_t>(b)));
  // A CUDA graph knows a parameter's address and nothing of the content, which may move out of another CUDA graph's
  // home.
  for (const CudaGraphMemory::Param& param : of.params()) {
    c10::Storage& content = emulated_[param.buffer];
    if (param.moves || param.address == nullptr) continue;
    content = c10::Storage(c10::Storage::use_byte_size_t(), content.nbytes(),
                           c10::DataPtr(content.mutable_data(), content.device()),
                           /*allocator=*/nullptr, /*resizable=*/false);
  }
  graph_ = this;
}

void CapturedPlan::EmulateReplay(Trace* trace, CudaGraphMemory* of) {
  std::vector<c10::Storage> contents = of->Contents(trace);  // calls take the slots for their operands
  PlanMemory memory(plan_.plan(), plan_.lowered(), plan_.size_bytes(), plan_.uses().read, trace);
  for (size_t b = 0; b < emulated_.size(); ++b) memory.Fix(static_cast<int32_t>(b), emulated_[b]);
  memory.numbers = ScalarsOf(plan_.lowered(), *trace);
  for (size_t step = 0; step < plan_.plan().steps.size(); ++step) plan_.RunStep(step, trace, &memory);
  memory.Keep();
  of->PutBack(std::move(contents), trace);
}

void CapturedPlan::Prepare(const Trace& trace) {
  if (!is_emulated()) RaiseIfError(record_->Update(plan_.ScalarsOfLaunches(ScalarsOf(plan_.lowered(), trace))));
}

void CapturedPlan::WaitForOtherStreams() const {
  if (!is_emulated()) InOrder([] {});
}

void CapturedPlan::ReplayOnGpu(const Trace& trace) {
  std::optional<DrawsOfReplay> draws;
  if (!draws_.empty()) draws.emplace(*FirstOf(DrawsOf(plan_, trace)));
  if (LaneWork::IsAmid()) return graphs_.replay(graph_);
  InOrder([&] { graphs_.replay(graph_); });
}

void CapturedPlan::Replay(Trace* trace, CudaGraphMemory* memory) {
  is_emulated() ? EmulateReplay(trace, memory) : ReplayOnGpu(*trace);
  base::Count(base::Counter::kGraphReplays);
  savings_.Repeat();
}

}  // namespace torch_lazy::lazy
