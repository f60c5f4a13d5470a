// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/lanes.h"

#include <atomic>
#include <map>
#include <utility>

#include <c10/core/Event.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "lazy/eager/on_host.h"

namespace torch_lazy::lazy {
namespace {

const c10::impl::DeviceGuardImplInterface& CudaGuard() { return *c10::impl::getDeviceGuardImpl(c10::kCUDA); }

struct Lane {
  const c10::Stream stream = CudaGuard().getStreamFromGlobalPool(EagerDevice(), /*isHighPriority=*/false);
  std::mutex lock;  // over what follows, for a whole replay
  c10::Event begin{c10::kCUDA}, end{c10::kCUDA};
  bool is_busy = false;  // it was asked for something that the main stream has not waited for
};

std::atomic<int> num_busy{0};
thread_local int amid_main_work = 0;
thread_local int lane_for_inputs = kMainStream;
thread_local bool amid_lane_work = false;

// Of the current device.
Lane& LaneAt(int number) {
  static auto* const lock = new std::mutex;
  static auto* const all = new std::map<std::pair<int, int>, Lane>;
  const std::lock_guard<std::mutex> held(*lock);
  return (*all)[{EagerDevice().index(), number}];
}

bool IsMainDefault() { return CurrentStream() == CudaGuard().getDefaultStream(EagerDevice()); }

// Lets in those who work for the main stream, or those who work for lanes. Who finds it open waits for nobody.
class Gate {
 public:
  static Gate& Get() {
    static auto* const gate = new Gate;
    return *gate;
  }

  void EnterMain() {
    ++main_;
    for (int lanes = lanes_; lanes != 0; lanes = lanes_) lanes_.wait(lanes);
  }
  void LeaveMain() { Leave(&main_); }

  void EnterLane() {
    for (++lanes_; main_ != 0; ++lanes_) {
      Leave(&lanes_);
      for (int main = main_; main != 0; main = main_) main_.wait(main);
    }
  }
  void LeaveLane() { Leave(&lanes_); }

 private:
  static void Leave(std::atomic<int>* inside) {
    if (--*inside == 0) inside->notify_all();
  }

  std::atomic<int> main_{0};   // who is within, or waits for lanes to leave
  std::atomic<int> lanes_{0};  // who is within, or is about to see that the main stream has work
};

}  // namespace

int LaneOfThread() {
  static std::atomic<int> threads{0};
  thread_local const int lane = 1 + threads++ % kNumLanes;
  return lane;
}

int LaneForInputs() { return lane_for_inputs; }

void NoteReplay(int lane) { lane_for_inputs = lane; }

MainWork::MainWork() : is_on_gpu_(!IsOnHost()) {
  if (!is_on_gpu_) return;
  Gate::Get().EnterMain();
  try {
    JoinLanes();
  } catch (...) {
    Gate::Get().LeaveMain();
    throw;
  }
  ++amid_main_work;
}

MainWork::~MainWork() {
  if (!is_on_gpu_) return;
  --amid_main_work;
  Gate::Get().LeaveMain();
}

bool LaneWork::IsPossible() { return IsOnHost() || (amid_main_work == 0 && IsMainDefault()); }

bool LaneWork::IsAmid() { return amid_lane_work; }

LaneWork::LaneWork(int lane) : lane_(lane) {
  if (IsOnHost()) {
    amid_lane_work = true;
    return;
  }
  Lane& at = LaneAt(lane);
  Gate::Get().EnterLane();
  try {
    lock_ = std::unique_lock<std::mutex>(at.lock);  // who is within waits for nobody who is not
    if (const c10::Stream main = *CurrentStream(); !main.query()) {
      at.begin.record(main);
      at.begin.block(at.stream);
    }
    on_.emplace(at.stream);
    amid_lane_work = true;
  } catch (...) {
    Gate::Get().LeaveLane();
    throw;
  }
}

LaneWork::~LaneWork() {
  amid_lane_work = false;
  if (IsOnHost()) return;
  on_.reset();
  if (!std::exchange(LaneAt(lane_).is_busy, true)) ++num_busy;
  Gate::Get().LeaveLane();
}

void JoinLanes() {
  if (num_busy.load(std::memory_order_acquire) == 0) return;
  const bool is_default = IsMainDefault();
  for (int lane = 1; lane <= kNumLanes; ++lane) {
    Lane& at = LaneAt(lane);
    const std::lock_guard<std::mutex> lock(at.lock);
    if (!at.is_busy) continue;
    at.end.record(at.stream);
    is_default ? at.end.block(*CurrentStream()) : at.end.synchronize();
    at.is_busy = false;
    --num_busy;
  }
}

void TellAllocator(const c10::Storage& memory, int lane) {
  if (!IsOnHost() && lane != kMainStream) CudaGuard().recordDataPtrOnStream(memory.data_ptr(), LaneAt(lane).stream);
}

std::optional<c10::Stream> StreamOfLane(int lane) {
  if (IsOnHost() || lane == kMainStream) return std::nullopt;
  return LaneAt(lane).stream;
}

}  // namespace torch_lazy::lazy
