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
#include "lazy/eager/memory.h"
#include "lazy/host/raise.h"
#include "lazy/run/bound_plan.h"
#include "lazy/trace/unwritten.h"
#include "lazy/variants/kept_cuda_graphs.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kFewestSteps = 3;
constexpr int kStays = 2;  // runs, of a parameter at one address
constexpr int kMostMoves = 6;
constexpr int kOftenMoved = 3;
constexpr size_t kBytesOfStep = 4 << 10;  // that CUDA keeps for a node of a graph, roughly

// Seconds of the emulation, which must not follow the clock: as with CUDA, a capture takes as long as some replays
// save.
constexpr double kEmulatedLaunches = 0.35e-3, kEmulatedReplay = 0.1e-3, kEmulatedCapture = 4e-3;

// A plan that could have a graph runs: the time of cuda_graph_choice.h and kept_cuda_graphs.h.
int64_t NextRun() {
  static std::atomic<int64_t> runs{0};
  return runs.fetch_add(1, std::memory_order_relaxed);
}

// Null: it has no memory yet.
const void* AddressOf(const c10::Storage& content) {
  if (!content) return nullptr;
  return content.nbytes() == 0 ? &kStays : content.data();
}

// A storage may be larger than what lies in it.
void CopyShared(const c10::Storage& to, const c10::Storage& from) {
  CopyContent(to, from, std::min(to.nbytes(), from.nbytes()));
}

bool IsOfDraw(const Op& op, int arg) { return op.seed_arg >= 0 && (arg == op.seed_arg || arg == op.seed_arg + 1); }

// Where a graph's draws begin; nothing if they have several seeds.
std::optional<PhiloxDraw> FirstOf(const std::vector<PhiloxDraw>& draws) {
  PhiloxDraw first = draws.empty() ? PhiloxDraw() : draws[0];
  for (const PhiloxDraw& draw : draws) {
    if (draw.seed != first.seed) return std::nullopt;
    first.offset = std::min(first.offset, draw.offset);
  }
  return first;
}

// True if a graph that was captured with the one will draw the other.
bool LieAlike(const std::vector<PhiloxDraw>& a, const std::vector<PhiloxDraw>& b) {
  const std::optional<PhiloxDraw> first_a = FirstOf(a), first_b = FirstOf(b);
  return first_a && first_b &&
         std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const PhiloxDraw& x, const PhiloxDraw& y) {
           return x.offset - first_a->offset == y.offset - first_b->offset;
         });
}

bool IsSame(const c10::IValue& a, const c10::IValue& b) {
  if (a.isNone() && b.isNone()) return true;
  if (a.isInt() && b.isInt()) return a.toInt() == b.toInt();
  if (a.isBool() && b.isBool()) return a.toBool() == b.toBool();
  return a.isDouble() && b.isDouble() && a.toDouble() == b.toDouble();
}

}  // namespace

std::unique_ptr<GraphedPlan> GraphedPlan::For(const BoundPlan& plan) {
  const CudaGraphs* graphs = FindCudaGraphs();
  if (graphs == nullptr || plan.plan_.steps.size() < kFewestSteps || plan.page_ != nullptr) return nullptr;
  return std::unique_ptr<GraphedPlan>(new GraphedPlan(plan, *graphs));
}

GraphedPlan::GraphedPlan(const BoundPlan& plan, const CudaGraphs& graphs)
    : plan_(plan), graphs_(graphs), choice_(&AccountOf(Venture::kGraphs)) {
  std::vector<bool> is_written(plan.plan_.buffers.size());
  for (const codegen::Step& step : plan.plan_.steps) {
    for (const int32_t buffer : step.results) {
      if (buffer >= 0) is_written[buffer] = true;
    }
    for (const codegen::Instance& instance : step.instances) {
      for (const int32_t buffer : instance.written) is_written[buffer] = true;
    }
  }
  for (size_t b = 0; b < plan.plan_.buffers.size(); ++b) {
    const codegen::BufferSpec& buffer = plan.plan_.buffers[b];
    if (buffer.kind != codegen::BufferSpec::Kind::kParam) continue;
    const bool is_read = std::ranges::binary_search(plan.read_params_, static_cast<int32_t>(b));
    params_.push_back({static_cast<int32_t>(b), plan.lowered_.param_slots[buffer.index], is_written[b], is_read});
  }
  for (size_t k = 0; k < plan.plan_.outputs.size(); ++k) {
    results_.push_back({plan.lowered_.output_slots[k], plan.plan_.outputs[k], nullptr});
    const codegen::BufferSpec& buffer = plan.plan_.buffers[plan.plan_.outputs[k]];
    const bool is_param = buffer.kind == codegen::BufferSpec::Kind::kParam;
    if (is_param && plan.lowered_.param_slots[buffer.index] != results_.back().slot)
      refused_ = true;  // takes another's memory
  }
}

GraphedPlan::~GraphedPlan() {
  if (was_captured_) KeptGraphs::Get().Remove(this);  // which waits for who may be dropping it
  Drop();
}

void GraphedPlan::LeaveRoom() {
  if (std::exchange(is_kept_, false)) KeptGraphs::Get().Remove(this);
}

void GraphedPlan::LetGo() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || graph_ == nullptr) return;
  repeats_ = true;
  Drop();
  LeaveRoom();
}

bool GraphedPlan::TryDrop() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  is_kept_ = false;
  if (graph_ != nullptr) choice_.Dropped();
  Drop();
  for (Param& param : params_) param.home = c10::Storage();
  return true;
}

void GraphedPlan::Drop() {
  if (graph_ != nullptr && &graphs_ != &kEmulatedGraphs) graphs_.destroy(graph_);
  graph_ = nullptr;
  record_.reset();
  emulated_.clear();
  for (Result& result : results_) result.home.reset();
}

void GraphedPlan::Refuse(const char* why) {
  LAZY_LOG(1, "no graph: ", why);
  refused_ = true;
  Drop();
  LeaveRoom();
  for (Param& param : params_) param.home = c10::Storage();
}

// Nothing was ever stored there, and deterministic algorithms fill it: anew in each run, which a graph would not.
bool GraphedPlan::IsFilled(const Param& param, const Trace& trace) const {
  if (param.slot < 0 || !param.is_read) return false;
  const Trace::Slot& slot = trace.slots[static_cast<size_t>(param.slot)];
  return !slot.content && slot.unwritten != at::ScalarType::Undefined;
}

// Which parameters move.
void GraphedPlan::NoteAddresses(Trace* trace) {
  const bool is_first = !std::exchange(has_addresses_, true);
  for (Param& param : params_) {
    const void* const address = AddressOf(ContentAt(plan_.lowered_, param.slot, trace));
    const void* const before = std::exchange(param.address, address);
    if (IsFilled(param, *trace)) return Refuse("a parameter is filled before each run");
    if (is_first) continue;
    ++param.stayed;
    if (address == before) continue;
    if (address == nullptr || before == nullptr) return Refuse("a parameter has memory now and then");
    param.stayed = 0;
    param.moves |= was_captured_ && ++param.moved == kOftenMoved;
  }
}

// True if the graph will do for this trace.
bool GraphedPlan::Fits(Trace* trace) const {
  return thread_ == std::this_thread::get_id() && LieAlike(draws_, DrawsOf(*trace)) &&
         std::ranges::all_of(params_, [&](const Param& param) {
           const void* const address = AddressOf(ContentAt(plan_.lowered_, param.slot, trace));
           return (address == param.address && !IsFilled(param, *trace)) || (param.moves && address != nullptr);
         });
}

// A copy takes the host as long as a launch (64 gradients that an optimizer's three launches read: 0.3 ms).
bool GraphedPlan::CopiesLittle() const {
  size_t copies = 0;
  for (const Param& param : params_) copies += param.moves ? 1 + param.is_written : 0;
  return copies < plan_.plan_.steps.size();
}

// What a graph holds: homes at most, arguments of launches, and what CUDA keeps.
size_t GraphedPlan::SizeBytes() const {
  size_t size_bytes = plan_.LaunchBytes() + kBytesOfStep * plan_.plan_.steps.size();
  for (const Param& param : params_) size_bytes += param.moves ? plan_.size_bytes_[param.buffer] : 0;
  for (const Result& result : results_) {
    const bool is_param = plan_.plan_.buffers[result.buffer].kind == codegen::BufferSpec::Kind::kParam;
    size_bytes += is_param ? 0 : plan_.size_bytes_[result.buffer];
  }
  return size_bytes;
}

template <typename Do>
void GraphedPlan::ForEachCall(const Do& run) const {
  for (const codegen::Step& step : plan_.plan_.steps) {
    if (step.kind != codegen::Step::Kind::kCall) continue;
    run(*plan_.entry_.calls()[static_cast<size_t>(plan_.graph_.node(step.call).attrs.index)]);
  }
}

// Of calls that ATen runs: these become part of a graph.
std::vector<c10::IValue> GraphedPlan::NumbersOfCalls(const Trace& trace) const {
  std::vector<c10::IValue> numbers;
  ForEachCall([&](const TrieNode& call) {
    for (const int16_t arg : call.number_args) {
      if (!IsOfDraw(*call.op, arg)) numbers.push_back(trace.Argument(call, arg));
    }
  });
  return numbers;
}

std::vector<PhiloxDraw> GraphedPlan::DrawsOf(const Trace& trace) const {
  std::vector<PhiloxDraw> draws;
  ForEachCall([&](const TrieNode& call) {
    const int seed = call.op->seed_arg;
    if (seed < 0 || !trace.Argument(call, seed).isInt()) return;
    draws.push_back({trace.Argument(call, seed).toInt(), trace.Argument(call, seed + 1).toInt()});
  });
  return draws;
}

bool GraphedPlan::Run(Trace* trace) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || refused_) return false;
  const int64_t now = NextRun();
  if (graph_ != nullptr) {
    const std::vector<c10::IValue> numbers = NumbersOfCalls(*trace);
    if (!std::equal(numbers.begin(), numbers.end(), numbers_of_calls_.begin(), &IsSame)) {
      Refuse("a number among the arguments of a call changes");
      return false;
    }
    repeats_ = !Fits(trace);
    if (repeats_ && ++moves_ > kMostMoves) {
      Refuse("addresses go on changing");
      return false;
    }
    if (repeats_) Drop();
  }
  const double start = SecondsNow();
  const bool is_new = graph_ == nullptr;
  if (is_new && !TryCapture(trace, now)) return false;
  const bool is_emulated = &graphs_ == &kEmulatedGraphs;
  if (is_new) choice_.Captured(is_emulated ? kEmulatedCapture : SecondsNow() - start);
  if (!is_new) KeptGraphs::Get().Use(this, now);
  const int64_t stream = CurrentStreamId();
  if (stream != std::exchange(stream_, stream)) WaitForEagerDevice();  // homes are used in one stream's order
  if (!TryPrepareReplay(trace)) return false;
  Replay(trace);
  if (!is_new) choice_.Replayed(is_emulated ? kEmulatedReplay : SecondsNow() - start);
  return true;
}

void GraphedPlan::AddLaunched(double seconds) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) choice_.Launched(&graphs_ == &kEmulatedGraphs ? kEmulatedLaunches : seconds);
}

// There is no graph, or none that fits.
bool GraphedPlan::TryCapture(Trace* trace, int64_t now) {
  LeaveRoom();
  NoteAddresses(trace);
  if (refused_) return false;
  const bool repeats = std::exchange(repeats_, false);
  const bool is_wanted = (repeats && choice_.MayRepeat()) || choice_.Ask(now);
  if (repeats && !is_wanted) choice_.Dropped();
  if (!is_wanted) return false;
  for (Param& param : params_) {
    if (!was_captured_) param.moves = param.stayed < kStays;
  }
  if (!CopiesLittle()) {
    Refuse("it would copy more parameters than it has steps");
    return false;
  }
  is_kept_ = KeptGraphs::Get().TryAdd(this, SizeBytes(), now);
  if (!is_kept_) return false;
  was_captured_ = true;
  if (!Capture(trace)) LeaveRoom();
  return graph_ != nullptr;
}

bool GraphedPlan::Capture(Trace* trace) {
  thread_ = std::this_thread::get_id();
  numbers_of_calls_ = NumbersOfCalls(*trace);
  for (const c10::IValue& number : numbers_of_calls_) {
    if (!IsSame(number, number)) return Refuse("a call takes a number from the host's memory"), false;
  }
  draws_ = DrawsOf(*trace);
  if (!FirstOf(draws_)) return Refuse("its calls draw random numbers of several seeds"), false;
  std::vector<c10::Storage> contents;
  for (const Param& param : params_) contents.push_back(ContentAt(plan_.lowered_, param.slot, trace));
  const auto take_back = absl::MakeCleanup([&] {
    for (size_t k = 0; k < params_.size(); ++k)
      ContentAt(plan_.lowered_, params_[k].slot, trace) = std::move(contents[k]);
  });
  base::Count(base::Counter::kGraphCaptures);
  bool captured = true;
  const double start = SecondsNow();
  try {
    PlanMemory memory(plan_.plan_, plan_.lowered_, plan_.size_bytes_, plan_.read_params_, trace);
    memory.numbers = NumbersOf(plan_.lowered_, *trace);
    FixMemory(&memory);
    if (&graphs_ == &kEmulatedGraphs) {
      EmulateCapture(&memory);
    } else {
      captured = CaptureSteps(trace, &memory);
    }
  } catch (const std::exception& error) {  // there is no memory for what outlives a replay
    Refuse(error.what());
    captured = false;
  }
  if (!captured) choice_.Captured(&graphs_ == &kEmulatedGraphs ? kEmulatedCapture : SecondsNow() - start);
  return captured;
}

// All that outlives a replay; the rest is shared with other graphs.
void GraphedPlan::FixMemory(PlanMemory* memory) {
  std::vector<bool> is_fixed(plan_.plan_.buffers.size());
  for (Param& param : params_) {
    if (param.address == nullptr) continue;
    if (param.moves && !param.home) param.home = NewContent(plan_.size_bytes_[param.buffer]);
    memory->Fix(param.buffer, param.moves ? param.home : memory->Content(param.buffer));
    is_fixed[param.buffer] = true;
  }
  for (Result& result : results_) {
    if (is_fixed[result.buffer]) continue;
    result.home = std::make_unique<GraphHome>(NewContent(plan_.size_bytes_[result.buffer]));
    memory->Fix(result.buffer, result.home->memory());
  }
}

bool GraphedPlan::CaptureSteps(Trace* trace, PlanMemory* memory) {
  backends::Backend& backend = backends::Get();
  const std::lock_guard<std::mutex> nobody_draws(DrawMutex());
  absl::StatusOr<std::unique_ptr<backends::LaunchRecord>> record = backend.BeginRecord(plan_.LaunchBytes());
  RaiseIfError(record.status());
  record_ = *std::move(record);
  memory->is_captured = true;
  const LeaveUnwritten unwritten;
  std::string failure;
  void* graph = nullptr;
  const Account &products = AccountOf(Venture::kCudaProducts), &convolutions = AccountOf(Venture::kConvolutions);
  const double products_saved = products.SavedHere(), convolutions_saved = convolutions.SavedHere();
  try {
    graph = graphs_.begin();
    const CapturedDraws draws{*FirstOf(draws_), graphs_.seek, graph};
    captured_draws = &draws;
    const auto end_of_draws = absl::MakeCleanup([] { captured_draws = nullptr; });
    for (size_t step = 0; step < plan_.plan_.steps.size(); ++step) plan_.RunStep(step, trace, memory);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  backend.EndRecord();
  products_save_ = products.SavedHere() - products_saved;
  convolutions_save_ = convolutions.SavedHere() - convolutions_saved;
  try {
    if (graph != nullptr) graphs_.end(graph);
    graph_ = graph;
  } catch (const std::exception& error) {
    failure += error.what();
  }
  if (!failure.empty()) Refuse(failure.c_str());
  return graph_ != nullptr;
}

void GraphedPlan::EmulateCapture(PlanMemory* memory) {
  emulated_.clear();
  for (size_t b = 0; b < plan_.plan_.buffers.size(); ++b) emulated_.push_back(memory->Content(static_cast<int32_t>(b)));
  // A graph knows a parameter's address and nothing of the content, which may move out of another graph's home.
  for (const Param& param : params_) {
    c10::Storage& content = emulated_[param.buffer];
    if (param.moves || param.address == nullptr) continue;
    content = c10::Storage(c10::Storage::use_byte_size_t(), content.nbytes(),
                           c10::DataPtr(content.mutable_data(), content.device()),
                           /*allocator=*/nullptr, /*resizable=*/false);
  }
  graph_ = this;
}

void GraphedPlan::EmulateReplay(Trace* trace) {
  std::vector<c10::Storage> contents;  // calls take the slots for their operands
  for (const Param& param : params_) contents.push_back(ContentAt(plan_.lowered_, param.slot, trace));
  PlanMemory memory(plan_.plan_, plan_.lowered_, plan_.size_bytes_, plan_.read_params_, trace);
  for (size_t b = 0; b < emulated_.size(); ++b) memory.Fix(static_cast<int32_t>(b), emulated_[b]);
  memory.numbers = NumbersOf(plan_.lowered_, *trace);
  for (size_t step = 0; step < plan_.plan_.steps.size(); ++step) plan_.RunStep(step, trace, &memory);
  memory.Keep();
  for (size_t k = 0; k < params_.size(); ++k)
    ContentAt(plan_.lowered_, params_[k].slot, trace) = std::move(contents[k]);
}

// Nothing of the trace's has been written when this fails: it runs without the graph.
bool GraphedPlan::TryPrepareReplay(Trace* trace) {
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

void GraphedPlan::PrepareReplay(Trace* trace) {
  const bool is_emulated = &graphs_ == &kEmulatedGraphs;
  if (!is_emulated) RaiseIfError(record_->Update(plan_.ScalarsOfLaunches(NumbersOf(plan_.lowered_, *trace))));
  for (const Param& param : params_) {
    if (param.moves) CopyShared(param.home, ContentAt(plan_.lowered_, param.slot, trace));
  }
  for (Result& result : results_) {
    if (result.home != nullptr) result.home->Vacate();
  }
}

void GraphedPlan::Replay(Trace* trace) {
  if (&graphs_ == &kEmulatedGraphs) {
    EmulateReplay(trace);
  } else {
    std::optional<DrawScope> draws;
    if (!draws_.empty()) draws.emplace(*FirstOf(DrawsOf(*trace)));
    graphs_.replay(graph_);
  }
  base::Count(base::Counter::kGraphReplays);
  AccountOf(Venture::kCudaProducts).Save(products_save_);
  AccountOf(Venture::kConvolutions).Save(convolutions_save_);
  for (const Param& param : params_) {
    if (param.moves && param.is_written) CopyShared(ContentAt(plan_.lowered_, param.slot, trace), param.home);
  }
  for (Result& result : results_) {
    c10::Storage& content = ContentAt(plan_.lowered_, result.slot, trace);
    if (result.home != nullptr) content = result.home->Lend();
  }
}

}  // namespace torch_lazy::lazy
