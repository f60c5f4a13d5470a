// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/cuda_graph_memory.h"

#include <algorithm>
#include <utility>

#include "lazy/eager/eager_device.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/memory.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kStays = 2;  // runs, of a parameter at one address
constexpr int kOftenMoved = 3;
constexpr size_t kFewBytes = 16 << 20;
constexpr size_t kFewOfAll = 8;           // an eighth
constexpr size_t kBytesOfStep = 4 << 10;  // that CUDA keeps for a node of a CUDA graph, roughly

// Null: it has no memory yet.
const void* AddressOf(const c10::Storage& content) {
  if (!content) return nullptr;
  return content.nbytes() == 0 ? &kStays : content.data();
}

// A storage may be larger than what lies in it.
void CopyShared(const c10::Storage& to, const c10::Storage& from) {
  CopyContent(to, from, std::min(to.nbytes(), from.nbytes()));
}

}  // namespace

bool TakesAnothersMemory(const BoundPlan& plan) {
  for (size_t k = 0; k < plan.plan().outputs.size(); ++k) {
    const codegen::BufferSpec& buffer = plan.plan().buffers[plan.plan().outputs[k]];
    const bool is_param = buffer.kind == codegen::BufferSpec::Kind::kParam;
    if (is_param && plan.lowered().param_slots[buffer.index] != plan.lowered().output_slots[k]) return true;
  }
  return false;
}

CudaGraphMemory::CudaGraphMemory(const BoundPlan& plan, std::atomic<uint64_t>* newest) : plan_(plan), newest_(*newest) {
  std::vector<bool> is_written(plan.plan().buffers.size());
  for (const codegen::Step& step : plan.plan().steps) {
    for (const int32_t buffer : step.results) {
      if (buffer >= 0) is_written[buffer] = true;
    }
    for (const codegen::Instance& instance : step.instances) {
      for (const int32_t buffer : instance.written) is_written[buffer] = true;
    }
  }
  for (size_t b = 0; b < plan.plan().buffers.size(); ++b) {
    const codegen::BufferSpec& buffer = plan.plan().buffers[b];
    if (buffer.kind != codegen::BufferSpec::Kind::kParam) continue;
    const bool is_read = std::ranges::binary_search(plan.uses().read, static_cast<int32_t>(b));
    params_.push_back({static_cast<int32_t>(b), plan.lowered().param_slots[buffer.index], is_written[b], is_read});
  }
  for (size_t k = 0; k < plan.plan().outputs.size(); ++k)
    results_.push_back({plan.lowered().output_slots[k], plan.plan().outputs[k], nullptr});
}

// Nothing was ever stored there, and deterministic algorithms fill it: anew in each run, which a CUDA graph would not.
bool CudaGraphMemory::IsFilled(const Param& param, const Trace& trace) {
  if (param.slot < 0 || !param.is_read) return false;
  const Trace::Slot& slot = trace.slots[static_cast<size_t>(param.slot)];
  return !slot.content && slot.unwritten != at::ScalarType::Undefined;
}

// Made after all that the plan has read before: an input, a gradient. Such a storage is at another address because it
// is another one.
bool CudaGraphMemory::IsYoung(const Param& param, const Trace& trace) const {
  if (param.slot < 0) return false;
  const uint64_t serial = trace.slots[static_cast<size_t>(param.slot)].serial;
  return serial == 0 || serial > newest_.load(std::memory_order_relaxed);
}

void CudaGraphMemory::NoteAge(const Param& param, const Trace& trace) {
  if (param.slot < 0) return;
  const uint64_t serial = trace.slots[static_cast<size_t>(param.slot)].serial;
  if (serial > newest_.load(std::memory_order_relaxed)) newest_.store(serial, std::memory_order_relaxed);
}

// Replays write there while it is read.
bool CudaGraphMemory::IsInOwnHome(const Param& param) const {
  return std::ranges::any_of(results_, [&](const Result& result) {
    return result.home != nullptr && result.home->memory().data() == param.address;
  });
}

const char* CudaGraphMemory::NoteAddresses(Trace* trace, bool was_captured) {
  const bool is_first = !std::exchange(has_addresses_, true);
  for (Param& param : params_) {
    const c10::Storage& content = ContentAt(plan_.lowered(), param.slot, trace);
    const void* const address = AddressOf(content);
    const void* const before = std::exchange(param.address, address);
    param.is_lent = IsLent(content);
    param.moves |= param.is_lent && IsInOwnHome(param);
    NoteAge(param, *trace);
    if (IsFilled(param, *trace)) return "a parameter is filled before each run";
    if (is_first) continue;
    ++param.stayed;
    if (address == before) continue;
    if (address == nullptr || before == nullptr) return "a parameter has memory now and then";
    param.stayed = 0;
    param.moves |= was_captured && ++param.moved == kOftenMoved;
  }
  return nullptr;
}

void CudaGraphMemory::ChooseMoving() {
  for (Param& param : params_) param.moves = param.stayed < kStays && !param.is_lent;
}

CudaGraphMemory::Distance CudaGraphMemory::DistanceTo(Trace* trace) const {
  Distance distance;
  for (const Param& param : params_) {
    const c10::Storage& content = ContentAt(plan_.lowered(), param.slot, trace);
    if (param.moves || (IsLent(content) ? !param.is_lent : IsYoung(param, *trace))) continue;
    ++distance.tell;
    distance.away += AddressOf(content) != param.address;
  }
  return distance;
}

void CudaGraphMemory::ForgetMoves() {
  for (Param& param : params_) param.moved = 0;
}

bool CudaGraphMemory::Fits(Trace* trace) const {
  return std::ranges::all_of(params_, [&](const Param& param) {
    const void* const address = AddressOf(ContentAt(plan_.lowered(), param.slot, trace));
    return (address == param.address && !IsFilled(param, *trace)) || (param.moves && address != nullptr);
  });
}

// A copy takes the host as long as a launch: of 64 gradients, say, that an optimizer's three launches read.
bool CudaGraphMemory::CopiesLittle() const {
  size_t copies = 0;
  for (const Param& param : params_) copies += param.moves ? 1 + param.is_written : 0;
  return copies < plan_.plan().steps.size();
}

bool CudaGraphMemory::CopiesMuch() const {
  size_t copied = 0, all = 0;
  for (const size_t size_bytes : plan_.size_bytes()) all += size_bytes;
  for (const Param& param : params_) copied += param.moves ? plan_.size_bytes()[param.buffer] : 0;
  return copied > std::max(kFewBytes, all / kFewOfAll);
}

size_t CudaGraphMemory::SizeBytes() const {
  size_t size_bytes = plan_.LaunchBytes() + kBytesOfStep * plan_.plan().steps.size();
  for (const Param& param : params_) size_bytes += param.moves ? plan_.size_bytes()[param.buffer] : 0;
  for (const Result& result : results_) {
    const bool is_param = plan_.plan().buffers[result.buffer].kind == codegen::BufferSpec::Kind::kParam;
    size_bytes += is_param ? 0 : plan_.size_bytes()[result.buffer];
  }
  return size_bytes;
}

void CudaGraphMemory::Fix(PlanMemory* memory) {
  std::vector<bool> is_fixed(plan_.plan().buffers.size());
  for (Param& param : params_) {
    if (param.address == nullptr) continue;
    if (param.moves && !param.home) param.home = NewContent(plan_.size_bytes()[param.buffer]);
    memory->Fix(param.buffer, param.moves ? param.home : memory->Content(param.buffer));
    is_fixed[param.buffer] = true;
  }
  for (Result& result : results_) {
    if (!is_fixed[result.buffer] && result.home == nullptr)
      result.home = std::make_unique<CudaGraphResult>(NewContent(plan_.size_bytes()[result.buffer]));
  }
  FixResults(memory);
}

void CudaGraphMemory::FixResults(PlanMemory* memory) {
  for (const Result& result : results_) {
    if (result.home != nullptr) memory->Fix(result.buffer, result.home->memory());
  }
}

std::vector<c10::Storage> CudaGraphMemory::Contents(Trace* trace) const {
  std::vector<c10::Storage> contents;
  for (const Param& param : params_) contents.push_back(ContentAt(plan_.lowered(), param.slot, trace));
  return contents;
}

void CudaGraphMemory::PutBack(std::vector<c10::Storage> contents, Trace* trace) const {
  for (size_t k = 0; k < params_.size(); ++k)
    ContentAt(plan_.lowered(), params_[k].slot, trace) = std::move(contents[k]);
}

void CudaGraphMemory::CopyIn(Trace* trace) {
  for (const Param& param : params_) {
    if (!param.moves) continue;
    NoteAge(param, *trace);
    CopyShared(param.home, ContentAt(plan_.lowered(), param.slot, trace));
  }
}

bool CudaGraphMemory::WritesResultsAlone() const {
  return std::ranges::none_of(params_, [](const Param& param) { return param.is_written; });
}

bool CudaGraphMemory::MayRunOn(int lane, Trace* trace) const {
  return std::ranges::all_of(params_, [&](const Param& param) {
    const c10::Storage& content = ContentAt(plan_.lowered(), param.slot, trace);
    if (!content) return true;  // nobody has written it, and nothing is read
    const int made_on = LaneOf(content);
    return (made_on == kMainStream || made_on == lane) && IsAllocated(MemoryOf(content));
  });
}

void CudaGraphMemory::TellOfParams(int lane, Trace* trace) {
  for (Param& param : params_) {
    const c10::Storage memory = MemoryOf(ContentAt(plan_.lowered(), param.slot, trace));
    if (!memory) continue;
    const void* const address = memory.data();
    if (param.told == memory.unsafeGetStorageImpl() && param.told_address == address) continue;
    TellAllocator(memory, lane);
    param.told = memory.unsafeGetStorageImpl();
    param.told_place = c10::weak_intrusive_ptr<c10::StorageImpl>(memory.getWeakStorageImpl());
    param.told_address = address;
  }
}

void CudaGraphMemory::TellOfHomes(int lane) const {
  for (const Param& param : params_) {
    if (param.home) TellAllocator(param.home, lane);
  }
  for (const Result& result : results_) {
    if (result.home != nullptr) TellAllocator(result.home->memory(), lane);
  }
}

bool CudaGraphMemory::HoldsResults() const {
  return std::ranges::any_of(results_,
                             [](const Result& result) { return result.home != nullptr && result.home->IsHeld(); });
}

void CudaGraphMemory::VacateResults() {
  for (Result& result : results_) {
    if (result.home != nullptr) result.home->Vacate();
  }
}

void CudaGraphMemory::TakeOut(Trace* trace, int lane) {
  for (const Param& param : params_) {
    if (param.moves && param.is_written) CopyShared(ContentAt(plan_.lowered(), param.slot, trace), param.home);
  }
  LendResults(trace, lane);
}

void CudaGraphMemory::LendResults(Trace* trace, int lane) {
  for (Result& result : results_) {
    c10::Storage& content = ContentAt(plan_.lowered(), result.slot, trace);
    if (result.home != nullptr) content = result.home->Lend(lane);
  }
}

void CudaGraphMemory::DropResults() {
  for (Result& result : results_) result.home.reset();
}

void CudaGraphMemory::DropHomes() {
  for (Param& param : params_) param.home = c10::Storage();
}

}  // namespace torch_lazy::lazy
