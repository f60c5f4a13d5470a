// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/cuda_graph_plan.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "backends/registry.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/eager/eager_device.h"
#include "lazy/host/raise.h"
#include "lazy/trace/unwritten.h"
#include "lazy/variants/captured_numbers.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kFewestSteps = 3;
constexpr int kMostMoves = 6;
constexpr int kOftenFitted = 8;  // replays in a row: a run at other addresses is an exception then
constexpr int kMostPostponed = 4, kMostPostponedForBytes = 2;  // each twice as long as the one before

// Seconds of the emulation, which must not follow the clock: as with CUDA, a capture takes as long as some replays
// save.
constexpr double kEmulatedLaunches = 0.35e-3, kEmulatedReplay = 0.1e-3, kEmulatedCapture = 4e-3;

// A plan that could have a CUDA graph runs: the time of cuda_graph_choice.h and kept_cuda_graphs.h.
int64_t NextRun() {
  static std::atomic<int64_t> runs{0};
  return runs.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

CudaGraphPlan::CudaGraphPlan(const BoundPlan& plan, const CudaGraphs& graphs)
    : plan_(plan), graphs_(graphs), memory_(plan), choice_(&AccountOf(Venture::kCudaGraphs)) {
  refused_ = memory_.TakesAnothers();
}

std::unique_ptr<CudaGraphPlan> CudaGraphPlan::For(const BoundPlan& plan) {
  const CudaGraphs* graphs = FindCudaGraphs();
  if (graphs == nullptr || plan.plan().steps.size() < kFewestSteps || plan.has_page()) return nullptr;
  return std::unique_ptr<CudaGraphPlan>(new CudaGraphPlan(plan, *graphs));
}

CudaGraphPlan::~CudaGraphPlan() {
  if (was_captured_) KeptCudaGraphs::Get().Remove(this);  // which waits for who may be dropping it
  Drop();
}

void CudaGraphPlan::LeaveRoom() {
  if (std::exchange(is_kept_, false)) KeptCudaGraphs::Get().Remove(this);
}

void CudaGraphPlan::LetGo() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || graph_ == nullptr) return;
  repeats_ = true;
  Drop();
  LeaveRoom();
  memory_.DropHomes();
}

bool CudaGraphPlan::TryDrop() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  is_kept_ = false;
  if (graph_ != nullptr) choice_.Dropped();
  Drop();
  memory_.DropHomes();
  return true;
}

void CudaGraphPlan::Drop() {
  DropGraph();
  memory_.DropResults();
}

// The homes of its results stay for the next one: what reads them there, be it in a circle, is not captured anew.
void CudaGraphPlan::DropGraph() {
  if (graph_ != nullptr && &graphs_ != &kEmulatedCudaGraphs) graphs_.destroy(graph_);
  graph_ = nullptr;
  record_.reset();
  emulated_.clear();
}

void CudaGraphPlan::Refuse(const char* why) {
  LAZY_LOG(1, "no graph: ", why);
  refused_ = true;
  Drop();
  LeaveRoom();
  memory_.DropHomes();
}

// True if the CUDA graph will do for this trace.
bool CudaGraphPlan::Fits(Trace* trace) const {
  return thread_ == std::this_thread::get_id() && LieAlike(draws_, DrawsOf(plan_, *trace)) && memory_.Fits(trace);
}

bool CudaGraphPlan::Run(Trace* trace) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || refused_) return false;
  const int64_t now = NextRun();
  if (graph_ != nullptr) {
    const std::vector<c10::IValue> numbers = NumbersOfCalls(plan_, *trace);
    if (!std::equal(numbers.begin(), numbers.end(), numbers_of_calls_.begin(), &IsSame)) {
      Refuse("a number among the arguments of a call changes");
      return false;
    }
    repeats_ = !Fits(trace);
    if (repeats_ && std::exchange(fitted_, 0) >= kOftenFitted && thread_ == std::this_thread::get_id()) {
      repeats_ = false;
      return TryLaunch(trace);
    }
    if (repeats_ && ++moves_ > kMostMoves) {
      Refuse("addresses go on changing");
      return false;
    }
    if (repeats_) thread_ == std::this_thread::get_id() ? DropGraph() : Drop();
  }
  const double start = SecondsNow();
  const bool is_new = graph_ == nullptr;
  if (is_new && !TryCapture(trace, now)) {
    if (was_captured_) memory_.DropResults();
    return false;
  }
  const bool is_emulated = &graphs_ == &kEmulatedCudaGraphs;
  if (is_new) choice_.Captured(is_emulated ? kEmulatedCapture : SecondsNow() - start);
  fitted_ = is_new ? 0 : fitted_ + 1;
  if (!is_new) KeptCudaGraphs::Get().Use(this, now);
  const int64_t stream = CurrentStreamId();
  if (stream != std::exchange(stream_, stream)) WaitForEagerDevice();  // homes are used in one stream's order
  if (!TryPrepareReplay(trace)) return false;
  Replay(trace);
  if (!is_new) choice_.Replayed(is_emulated ? kEmulatedReplay : SecondsNow() - start);
  return true;
}

void CudaGraphPlan::AddLaunched(double seconds) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) choice_.Launched(&graphs_ == &kEmulatedCudaGraphs ? kEmulatedLaunches : seconds);
}

// What another plan has made for this one stays at its place once that plan has a CUDA graph, and would be copied until
// then.
bool CudaGraphPlan::IsTooEarly() {
  const bool is_early = !memory_.CopiesLittle() ? postponed_ < kMostPostponed
                                                : memory_.CopiesMuch() && postponed_ < kMostPostponedForBytes;
  postponed_ += is_early;
  others_ = KeptCudaGraphs::Get().num_added();
  return is_early;
}

// Of a plan that was postponed: another has got a CUDA graph since, which may be the one that it waits for.
bool CudaGraphPlan::MayNoLongerBeTooEarly() const {
  return postponed_ != 0 && !was_captured_ && others_ != KeptCudaGraphs::Get().num_added();
}

// There is no CUDA graph, or none that fits.
bool CudaGraphPlan::TryCapture(Trace* trace, int64_t now) {
  LeaveRoom();
  if (const char* why = memory_.NoteAddresses(trace, was_captured_)) Refuse(why);
  if (refused_) return false;
  const bool repeats = std::exchange(repeats_, false);
  const bool asks_again = MayNoLongerBeTooEarly() && choice_.MayRepeat();
  if (asks_again) --postponed_;
  const bool is_wanted = asks_again || (repeats && choice_.MayRepeat()) || choice_.Ask(now);
  if (repeats && !is_wanted) choice_.Dropped();
  if (!is_wanted) return false;
  if (!was_captured_) memory_.ChooseMoving(trace);
  if (!was_captured_ && IsTooEarly()) {
    if (!asks_again) choice_.Postpone();
    return false;
  }
  if (!memory_.CopiesLittle()) {
    Refuse("it would copy more parameters than it has steps");
    return false;
  }
  is_kept_ = KeptCudaGraphs::Get().TryAdd(this, memory_.SizeBytes(), now);
  if (!is_kept_) return false;
  was_captured_ = true;
  if (!Capture(trace)) LeaveRoom();
  return graph_ != nullptr;
}

bool CudaGraphPlan::Capture(Trace* trace) {
  thread_ = std::this_thread::get_id();
  numbers_of_calls_ = NumbersOfCalls(plan_, *trace);
  for (const c10::IValue& number : numbers_of_calls_) {
    if (!IsSame(number, number)) return Refuse("a call takes a number from the host's memory"), false;
  }
  draws_ = DrawsOf(plan_, *trace);
  if (!FirstOf(draws_)) return Refuse("its calls draw random numbers of several seeds"), false;
  std::vector<c10::Storage> contents = memory_.Contents(trace);
  const auto take_back = absl::MakeCleanup([&] { memory_.PutBack(std::move(contents), trace); });
  bool captured = true;
  const double start = SecondsNow();
  try {
    PlanMemory memory(plan_.plan(), plan_.lowered(), plan_.size_bytes(), plan_.uses().read, trace);
    memory.numbers = ScalarsOf(plan_.lowered(), *trace);
    memory_.Fix(&memory);
    if (&graphs_ == &kEmulatedCudaGraphs) {
      EmulateCapture(&memory);
    } else {
      captured = CaptureSteps(trace, &memory);
    }
  } catch (const std::exception& error) {  // there is no memory for what outlives a replay
    Refuse(error.what());
    captured = false;
  }
  if (!captured) choice_.Captured(&graphs_ == &kEmulatedCudaGraphs ? kEmulatedCapture : SecondsNow() - start);
  return captured;
}

bool CudaGraphPlan::CaptureSteps(Trace* trace, PlanMemory* memory) {
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
    graph = graphs_.begin();
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
  if (!failure.empty()) Refuse(failure.c_str());
  return graph_ != nullptr;
}

void CudaGraphPlan::EmulateCapture(PlanMemory* memory) {
  emulated_.clear();
  for (size_t b = 0; b < plan_.plan().buffers.size(); ++b)
    emulated_.push_back(memory->Content(static_cast<int32_t>(b)));
  // A CUDA graph knows a parameter's address and nothing of the content, which may move out of another CUDA graph's
  // home.
  for (const CudaGraphMemory::Param& param : memory_.params()) {
    c10::Storage& content = emulated_[param.buffer];
    if (param.moves || param.address == nullptr) continue;
    content = c10::Storage(c10::Storage::use_byte_size_t(), content.nbytes(),
                           c10::DataPtr(content.mutable_data(), content.device()),
                           /*allocator=*/nullptr, /*resizable=*/false);
  }
  graph_ = this;
}

void CudaGraphPlan::EmulateReplay(Trace* trace) {
  std::vector<c10::Storage> contents = memory_.Contents(trace);  // calls take the slots for their operands
  PlanMemory memory(plan_.plan(), plan_.lowered(), plan_.size_bytes(), plan_.uses().read, trace);
  for (size_t b = 0; b < emulated_.size(); ++b) memory.Fix(static_cast<int32_t>(b), emulated_[b]);
  memory.numbers = ScalarsOf(plan_.lowered(), *trace);
  for (size_t step = 0; step < plan_.plan().steps.size(); ++step) plan_.RunStep(step, trace, &memory);
  memory.Keep();
  memory_.PutBack(std::move(contents), trace);
}

// Of a run that is an exception, after an evaluation say. What reads its results has a CUDA graph that finds them where
// they always are.
bool CudaGraphPlan::TryLaunch(Trace* trace) {
  memory_.VacateResults();
  if (!plan_.Run(trace, [&](PlanMemory* memory) { memory_.FixResults(memory); })) return false;
  memory_.LendResults(trace);
  return true;
}

// Nothing of the trace's has been written when this fails: it runs without the CUDA graph.
bool CudaGraphPlan::TryPrepareReplay(Trace* trace) {
  try {
    PrepareReplay(trace);
    return true;
  } catch (const std::exception& error) {
    LAZY_LOG(1, "no replay: ", error.what());
    choice_.Dropped();
    Drop();
    LeaveRoom();
    return false;
  }
}

void CudaGraphPlan::PrepareReplay(Trace* trace) {
  const bool is_emulated = &graphs_ == &kEmulatedCudaGraphs;
  if (!is_emulated) RaiseIfError(record_->Update(plan_.ScalarsOfLaunches(ScalarsOf(plan_.lowered(), *trace))));
  memory_.CopyIn(trace);
}

void CudaGraphPlan::Replay(Trace* trace) {
  if (&graphs_ == &kEmulatedCudaGraphs) {
    EmulateReplay(trace);
  } else {
    std::optional<DrawScope> draws;
    if (!draws_.empty()) draws.emplace(*FirstOf(DrawsOf(plan_, *trace)));
    graphs_.replay(graph_);
  }
  base::Count(base::Counter::kGraphReplays);
  savings_.Repeat();
  memory_.TakeOut(trace);
}

}  // namespace torch_lazy::lazy
