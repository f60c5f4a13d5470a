// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/cuda_graph_turn.h"

#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/lanes.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kMostMoves = 6;
constexpr int kOftenFitted = 8;   // replays in a row: a run at other addresses is an exception then
constexpr int kMostAwaited = 64;  // runs
constexpr int kMostPostponed = 4, kMostPostponedForBytes = 2;  // each twice as long as the one before

// Seconds of the emulation, which must not follow the clock: as with CUDA, a capture takes as long as some replays
// save.
constexpr double kEmulatedLaunches = 0.35e-3, kEmulatedReplay = 0.1e-3, kEmulatedCapture = 4e-3;

// A plan that could have a CUDA graph and has none is about to run: the time of cuda_graph_choice.h.
int64_t NextLaunch() {
  static std::atomic<int64_t> launches{0};
  return launches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

CudaGraphTurn::CudaGraphTurn(const BoundPlan& plan, const CudaGraphs& graphs, std::atomic<uint64_t>* newest)
    : plan_(plan), memory_(plan, newest), captured_(plan, graphs), choice_(&AccountOf(Venture::kCudaGraphs)) {}

CudaGraphTurn::~CudaGraphTurn() {
  if (was_captured_) KeptCudaGraphs::Get().Remove(this);  // which waits for who may be dropping it
}

void CudaGraphTurn::LeaveRoom() {
  if (std::exchange(is_kept_, false)) KeptCudaGraphs::Get().Remove(this);
}

void CudaGraphTurn::LetGo() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !captured_.is_there()) return;
  repeats_ = true;
  LeaveRoom();
  DropAll();
}

bool CudaGraphTurn::TryDrop() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  is_kept_ = false;
  if (captured_.is_there()) choice_.Dropped();
  DropAll();
  return true;
}

void CudaGraphTurn::Retire() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !captured_.is_there()) return;
  choice_.Dropped();
  LeaveRoom();
  DropAll();
}

void CudaGraphTurn::Drop() {
  captured_.Drop();
  memory_.DropResults();
}

void CudaGraphTurn::DropAll() {
  Drop();
  memory_.DropHomes();
}

bool CudaGraphTurn::Refuse(const char* why) {
  LAZY_LOG(1, "no graph: ", why);
  refused_ = true;
  LeaveRoom();
  DropAll();
  return false;
}

bool CudaGraphTurn::RefusePlan(const char* why) {
  refused_plan_ = true;
  return Refuse(why);
}

CudaGraphTurn::Outcome CudaGraphTurn::Run(Trace* trace, int64_t now, bool is_shared) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || refused_) return Outcome::kLaunch;
  return TryRun(trace, now, is_shared);
}

bool CudaGraphTurn::WouldReplay(Trace* trace, bool is_shared) const {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && captured_.is_there() && !MovesToLane(is_shared) && captured_.HasNumbersOf(*trace) &&
         memory_.Fits(trace) && captured_.DrawsLike(*trace);
}

CudaGraphTurn::Outcome CudaGraphTurn::TryRun(Trace* trace, int64_t now, bool is_shared) {
  const bool moves_to_lane = MovesToLane(is_shared);
  if (captured_.is_there() && !moves_to_lane) {
    if (!captured_.HasNumbersOf(*trace)) {
      RefusePlan("a number among the arguments of a call changes");
      return Outcome::kNever;
    }
    if (memory_.Fits(trace) && captured_.DrawsLike(*trace))
      return TryReplay(trace, now, /*is_new=*/false) ? Outcome::kReplayed : Outcome::kLaunch;
    const bool is_exception = std::exchange(fitted_, 0) >= kOftenFitted;
    if (is_exception || !WasLaunchedHere()) return TryLaunch(trace) ? Outcome::kRan : Outcome::kLaunch;
    if (choice_.HasPaid()) {
      moves_ = 0;
      memory_.ForgetMoves();
    }
    if (++moves_ > kMostMoves) {
      Refuse("addresses go on changing");
      return Outcome::kLaunch;
    }
    repeats_ = true;
    captured_.Drop();  // the homes of its results stay: what reads them there, be it in a circle, is not captured anew
  } else if (moves_to_lane) {
    repeats_ = true;
    captured_.Drop();
  }
  if (TryCapture(trace, now, is_shared) && TryReplay(trace, now, /*is_new=*/true)) return Outcome::kReplayed;
  return refused_plan_ ? Outcome::kNever : Outcome::kLaunch;
}

void CudaGraphTurn::AddLaunched(double seconds) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  launcher_ = std::this_thread::get_id();
  choice_.Launched(captured_.is_emulated() ? kEmulatedLaunches : seconds);
}

// Nothing of the trace's has been written when this fails: it runs without the CUDA graph.
bool CudaGraphTurn::TryReplay(Trace* trace, int64_t now, bool is_new) {
  const double start = SecondsNow();
  fitted_ = is_new ? 0 : fitted_ + 1;
  if (!is_new) KeptCudaGraphs::Get().Use(this, now);
  const int64_t stream = CurrentStreamId();
  if (stream != std::exchange(stream_, stream)) WaitForEagerDevice();  // homes are used in one stream's order
  const bool is_on_lane = captured_.lane() != kMainStream && trace->is_waited && LaneWork::IsPossible() &&
                          memory_.MayRunOn(captured_.lane(), trace);
  std::optional<MainWork> main;
  std::optional<LaneWork> lane;
  try {
    if (!is_on_lane || memory_.HoldsResults()) main.emplace();
    memory_.VacateResults();
    if (is_on_lane) {
      main.reset();
      captured_.WaitForOtherStreams();
      lane.emplace(captured_.lane());
      memory_.TellOfParams(captured_.lane(), trace);
    }
    captured_.Prepare(*trace);
    memory_.CopyIn(trace);
  } catch (const std::exception& error) {
    LAZY_LOG(1, "no replay: ", error.what());
    lane.reset();  // a CUDA graph that is dropped waits for its lane
    choice_.Dropped();
    Drop();
    LeaveRoom();
    return false;
  }
  captured_.Replay(trace, &memory_);
  memory_.TakeOut(trace, is_on_lane ? captured_.lane() : kMainStream);
  if (is_on_lane) base::Count(base::Counter::kLaneReplays);
  NoteReplay(is_on_lane ? captured_.lane() : kMainStream);
  if (!is_new) choice_.Replayed(captured_.is_emulated() ? kEmulatedReplay : SecondsNow() - start);
  return true;
}

// Of a run that is an exception, after an evaluation say, or of a thread that has not launched the plan. What reads its
// results has a CUDA graph that finds them where they always are.
bool CudaGraphTurn::TryLaunch(Trace* trace) {
  {
    const MainWork main;
    memory_.VacateResults();
  }
  launcher_ = std::this_thread::get_id();
  if (!plan_.Run(trace, [&](PlanMemory* memory) { memory_.FixResults(memory); })) return false;
  memory_.LendResults(trace, kMainStream);
  return true;
}

// There is no CUDA graph, or none that fits.
bool CudaGraphTurn::TryCapture(Trace* trace, int64_t now, bool is_shared) {
  LeaveRoom();
  if (MayCapture(trace, now) && Capture(trace, is_shared)) return true;
  LeaveRoom();
  if (was_captured_) memory_.DropResults();
  return false;
}

bool CudaGraphTurn::MayCapture(Trace* trace, int64_t now) {
  const int64_t launch = NextLaunch();
  if (const char* why = memory_.NoteAddresses(trace, was_captured_)) return RefusePlan(why);
  const bool repeats = std::exchange(repeats_, false);
  const bool asks_again = MayNoLongerBeTooEarly() && choice_.MayRepeat();
  if (asks_again) --postponed_;
  const bool is_wanted = asks_again || (repeats && choice_.MayRepeat()) || choice_.Ask(launch);
  if (repeats && !is_wanted) choice_.Dropped();
  if (!is_wanted) return false;
  // In a CUDA graph nothing is tried.
  if (!was_captured_ && awaited_ < kMostAwaited && plan_.AwaitsTrials()) {
    ++awaited_;
    return false;
  }
  if (!was_captured_) memory_.ChooseMoving();
  if (!was_captured_ && IsTooEarly()) {
    if (!asks_again) choice_.Postpone();
    return false;
  }
  if (!WasLaunchedHere()) {
    repeats_ = repeats;
    return false;
  }
  if (!memory_.CopiesLittle()) return Refuse("it would copy more parameters than it has steps");
  if (const char* why = captured_.NoteNumbers(*trace)) return RefusePlan(why);
  is_kept_ = KeptCudaGraphs::Get().TryAdd(this, memory_.SizeBytes(), now);
  return is_kept_;
}

bool CudaGraphTurn::Capture(Trace* trace, bool is_shared) {
  was_captured_ = true;
  const double start = SecondsNow();
  const std::string why_not = captured_.Capture(trace, &memory_, WantsLane(is_shared) ? LaneOfThread() : kMainStream);
  choice_.Captured(captured_.is_emulated() ? kEmulatedCapture : SecondsNow() - start);
  return why_not.empty() || RefusePlan(why_not.c_str());
}

// What another plan has made for this one stays at its place once that plan has a CUDA graph, and would be copied until
// then.
bool CudaGraphTurn::IsTooEarly() {
  const bool is_early = !memory_.CopiesLittle() ? postponed_ < kMostPostponed
                                                : memory_.CopiesMuch() && postponed_ < kMostPostponedForBytes;
  postponed_ += is_early;
  others_ = KeptCudaGraphs::Get().num_added();
  return is_early;
}

// Of a plan that was postponed: another has got a CUDA graph since, which may be the one that it waits for.
bool CudaGraphTurn::MayNoLongerBeTooEarly() const {
  return postponed_ != 0 && !was_captured_ && others_ != KeptCudaGraphs::Get().num_added();
}

}  // namespace torch_lazy::lazy
