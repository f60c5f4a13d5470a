// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/known_value.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "lazy/cuda/graph_result.h"
#include "lazy/cuts/early_cuts.h"
#include "lazy/cuts/early_reads.h"
#include "lazy/cuts/run_ahead.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/geometry.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/on_host.h"
#include "lazy/run/run_on_aliases.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/thread_trace.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kMostBytes = 4096;  // of a storage
constexpr int kMostCalls = 4;        // that are computed for one value
constexpr size_t kWorthIt = 8;       // on the host, a shorter trace had better run as a whole
constexpr size_t kNewest = 256;      // calls of a trace among which they are looked for
constexpr size_t kMostRead = 128;    // storages of a GPU

bool IsWhole(at::ScalarType dtype) { return c10::isIntegralType(dtype, /*includeBool=*/true); }

struct Content {
  uint64_t stamp;
  c10::Storage storage;
};

// Contents of a GPU that the host has read, by their stamps. The device lock guards it.
class ReadContents {
 public:
  c10::Storage Find(uint64_t stamp) const {
    const auto found = std::ranges::find(read_, stamp, &Content::stamp);
    return stamp == 0 || found == read_.end() ? c10::Storage() : found->storage;
  }
  void Add(Content content) {
    if (content.stamp == 0) return;
    if (read_.size() == kMostRead) read_.pop_back();
    read_.push_front(std::move(content));
  }

 private:
  std::deque<Content> read_;  // the newest first
};

ReadContents& AllRead() {
  static auto* const all = new ReadContents;
  return *all;
}

// What is in a storage that no call has written since; null if the host does not know.
c10::Storage Unchanged(const Content& content) { return IsOnHost() ? content.storage : AllRead().Find(content.stamp); }

// Computes slots of a pending trace on the host. The device lock is held.
class Computation {
 public:
  // `compares`: also comparisons of floating numbers.
  Computation(const Trace& trace, bool compares)
      : trace_(trace), oldest_(trace.path.size() - std::min(trace.path.size(), kNewest)), compares_(compares) {}

  // What is there at the trace's end; null if it cannot be computed.
  c10::Storage Slot(int32_t slot) { return Before(slot, trace_.path.size()); }

  // What the host would have to read for it.
  const std::vector<Content>& unread() const { return unread_; }

 private:
  c10::Storage Read(const TraceSlot& slot) {
    const c10::Storage known = compares_ ? AllRead().Find(slot.stamp) : Unchanged({slot.stamp, slot.content});
    if (!known && slot.content && slot.stamp != 0) unread_.push_back({slot.stamp, slot.content});
    return known;
  }

  // What is there before the call.
  c10::Storage Before(int32_t slot, size_t call) {
    const TraceSlot& its = trace_.slots[static_cast<size_t>(slot)];
    if (its.size_bytes > kMostBytes) return {};
    if (!its.written) return its.inherits ? c10::Storage() : Read(its);
    const auto makes = [&](size_t k) { return !its.external && k == its.first_call; };
    size_t last = call;  // the one behind the last that made or wrote it
    while (last > oldest_ && !makes(last - 1) && !Writes(*trace_.path[last - 1], slot)) --last;
    if (last == oldest_) return oldest_ == 0 && its.external && !its.inherits ? Read(its) : c10::Storage();
    for (const auto& [made, by, content] : made_) {
      if (made == slot && by == last - 1) return content;
    }
    const TrieNode& writer = *trace_.path[last - 1];
    return makes(last - 1) ? ResultOf(writer, slot, last - 1) : Overwritten(writer, slot, last - 1);
  }

  bool Writes(const TrieNode& call, int32_t slot) const {
    const auto writes = [slot](const NodeOperand& operand) { return operand.slot == slot && operand.written; };
    return std::ranges::any_of(call.operands, writes);
  }

  // A new whole number or truth value of such operands, exact on each device.
  bool IsExact(const TrieNode& call) const {
    const Op& op = *call.op;
    if (op.random || op.writes || op.may_fail() || op.runner != nullptr || call.shape->results.size() != 1)
      return false;
    const ResultShape& result = call.shape->results[0];
    if (!result.defined || result.item >= 0 || result.arg >= 0) return false;
    const auto is_complex = [](const NodeOperand& operand) { return c10::isComplexType(operand.geometry.dtype); };
    if (compares_ && (op.Has(kBoolean) || op.Has(kExact))) return std::ranges::none_of(call.operands, is_complex);
    return IsWhole(result.geometry.dtype) && std::ranges::all_of(call.operands, [](const NodeOperand& operand) {
             return IsWhole(operand.geometry.dtype);
           });
  }

  // Numbers that PyTorch has wrapped are the host's tensors.
  static bool IsForHost(const c10::IValue& argument) {
    if (argument.isTensor()) return !argument.toTensor().defined() || argument.toTensor().is_cpu();
    return !argument.isDevice() && (!argument.isList() || argument.isIntList());
  }

  // In place, of whole numbers.
  static bool IsExactWrite(const TrieNode& call) {
    const Op& op = *call.op;
    return op.writes_exactly && !op.random && !op.may_fail() && op.runner == nullptr &&
           std::ranges::all_of(call.operands, [](const NodeOperand& operand) {
             return operand.item < 0 && IsWhole(operand.geometry.dtype);
           });
  }

  // Does nothing matter of what was in the slot's storage?
  static bool FillsAll(const TrieNode& call, int32_t slot, size_t size_bytes) {
    const auto is_of_slot = [slot](const NodeOperand& operand) { return operand.slot == slot; };
    if (!call.op->Has(kFills) || std::ranges::count_if(call.operands, is_of_slot) != 1) return false;
    const Geometry& written = std::ranges::find_if(call.operands, is_of_slot)->geometry;
    const auto elements = static_cast<size_t>(c10::multiply_integers(written.sizes));
    return elements * c10::elementSize(written.dtype) == size_bytes;
  }

  // What call number `at` leaves of a storage that was there before it.
  c10::Storage Overwritten(const TrieNode& call, int32_t slot, size_t at) {
    if (++num_calls_ > kMostCalls || !IsExactWrite(call)) return {};
    const size_t size_bytes = trace_.slots[static_cast<size_t>(slot)].size_bytes;
    const bool fills_all = FillsAll(call, slot, size_bytes);
    const c10::Storage before = fills_all ? c10::Storage() : Before(slot, at);
    if (!fills_all && (!before || before.nbytes() < size_bytes)) return {};
    const at::Tensor left = at::zeros({static_cast<int64_t>(size_bytes)}, at::kByte);
    if (before) left.copy_(HostTensor(before, GeometryOf(left)));
    std::optional<torch::jit::Stack> stack = StackOf(call, at, slot, left.storage());
    if (!stack) return {};
    RunOnAliases(*call.op, &*stack);
    return made_.emplace_back(Made{slot, at, left.storage()}).content;
  }

  // The call's arguments on the host, of what was there before it, but for the content of `slot`.
  std::optional<torch::jit::Stack> StackOf(const TrieNode& call, size_t at, int32_t slot, const c10::Storage& of_slot) {
    torch::jit::Stack stack;
    for (size_t arg = 0; arg < call.op->args.size(); ++arg) {
      stack.push_back(trace_.Argument(call, arg));
      if (!IsForHost(stack.back())) return std::nullopt;
    }
    for (const NodeOperand& operand : call.operands) {
      const bool is_slot = of_slot && operand.slot == slot;
      const c10::Storage content = is_slot ? of_slot : operand.item < 0 ? Before(operand.slot, at) : c10::Storage();
      if (!content) return std::nullopt;
      stack[static_cast<size_t>(operand.arg)] = HostTensor(content, operand.geometry);
    }
    return stack;
  }

  c10::Storage ResultOf(const TrieNode& call, int32_t slot, size_t at) {
    if (++num_calls_ > kMostCalls || !IsExact(call)) return {};
    std::optional<torch::jit::Stack> stack = StackOf(call, at, slot, /*of_slot=*/{});
    if (!stack) return {};
    RunOnAliases(*call.op, &*stack);
    const at::Tensor result = (*stack)[0].toTensor();
    const Geometry& as = call.shape->results[0].geometry;
    if (!result.is_cpu() || result.storage_offset() != as.offset || result.sizes() != as.sizes ||
        result.strides() != as.strides)
      return {};
    return made_.emplace_back(Made{slot, at, result.storage()}).content;
  }

  struct Made {
    int32_t slot;
    size_t call;
    c10::Storage content;
  };

  const Trace& trace_;
  const size_t oldest_;
  const bool compares_;
  int num_calls_ = 0;
  std::vector<Made> made_;
  std::vector<Content> unread_;
};

// Waits for the GPU, and has all of the content for who asks next. The device lock is not held.
c10::Storage ReadFromGpu(const Content& content) {
  WaitForMoves();
  const auto size_bytes = static_cast<int64_t>(content.storage.nbytes());
  const OnDevice on(content.storage.device().index());
  const OnStream lane(StreamOfLane(LaneOf(content.storage)));
  c10::Storage read = Alias(content.storage, at::kByte, {size_bytes}, {1}, 0).cpu().storage();
  const Locked lock(DeviceLock());
  AllRead().Add({content.stamp, read});
  return read;
}

// What the trace's pending calls make of the storage, from what the host has read. The device lock is held.
c10::Storage Computed(const Trace& trace, const LazyStorageImpl& storage, bool compares, std::vector<Content>* unread) {
  const auto touch =
      std::ranges::find(storage.touches, &trace, [](const LazyStorageImpl::Touch& each) { return each.trace.get(); });
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  Computation computation(trace, compares);
  c10::Storage known = computation.Slot(touch->slot);
  if (!known) *unread = computation.unread();
  return known;
}

// What the tensor's storage holds, as far as the host knows. Else `*unread` is what it would have to read for that;
// empty: it must wait.
c10::Storage KnownContent(const Trace& trace, LazyStorageImpl* storage, std::vector<Content>* unread) {
  const Locked lock(DeviceLock());
  if (trace.state != Trace::State::kPending || trace.num_calls() == 0 || storage->IsSwapped()) return {};
  if (storage->writer == nullptr) {
    if (!storage->content) return {};
    const Content content{storage->stamp(), storage->content};
    c10::Storage known = Unchanged(content);
    if (!known) unread->push_back(content);
    return known;
  }
  if (storage->writer != &trace || (IsOnHost() && trace.num_calls() < kWorthIt)) return {};
  return Computed(trace, *storage, /*compares=*/false, unread);
}

// The same of what follows from values that can be read early, once they are.
c10::Storage EarlyContent(const Trace& trace, LazyStorageImpl* storage, std::vector<Content>* unread) {
  const Locked lock(DeviceLock());
  if (trace.state != Trace::State::kPending || storage->writer != &trace || storage->IsSwapped()) return {};
  return Computed(trace, *storage, /*compares=*/true, unread);
}

}  // namespace

at::Tensor KnownValue(const at::Tensor& tensor) {
  LazyStorageImpl* const storage = LazyStorageImpl::Of(tensor);
  if (storage == nullptr || storage->nbytes() > kMostBytes || !IsWhole(tensor.scalar_type()) ||
      CurrentReplayRecorder() != nullptr)
    return {};
  const std::shared_ptr<Trace> trace = NewestTrace();
  if (trace == nullptr) return {};
  if (IsOnHost()) WaitForMoves();
  std::vector<Content> unread;
  c10::Storage known = KnownContent(*trace, storage, &unread);
  if (unread.empty()) return known ? HostTensor(known, GeometryOf(tensor)) : at::Tensor();
  for (const Content& content : unread) {
    const c10::Storage read = ReadFromGpu(content);
    const Locked lock(DeviceLock());
    if (storage->writer == nullptr && storage->content.is_alias_of(content.storage)) known = read;
  }
  if (!known) known = KnownContent(*trace, storage, &unread);
  return known ? HostTensor(known, GeometryOf(tensor)) : at::Tensor();
}

at::Tensor EarlyValue(const at::Tensor& tensor) {
  LazyStorageImpl* const storage = LazyStorageImpl::Of(tensor);
  if (storage == nullptr || storage->nbytes() > kMostBytes || tensor.scalar_type() != at::kBool || !HasDeviceQueue() ||
      CurrentReplayRecorder() != nullptr)
    return {};
  const std::shared_ptr<Trace> trace = NewestTrace();
  if (trace == nullptr) return {};
  const OnDevice on(storage->device().index());
  WaitForMoves();
  std::vector<Content> unread;
  c10::Storage value = EarlyContent(*trace, storage, &unread);
  if (value || unread.empty()) return value ? HostTensor(value, GeometryOf(tensor)) : at::Tensor();
  for (const Content& content : unread) {
    const c10::Storage read = ReadEarly(content.stamp, content.storage);
    if (!read) return {};
    const Locked lock(DeviceLock());
    AllRead().Add({content.stamp, read});
  }
  value = EarlyContent(*trace, storage, &unread);
  return value ? HostTensor(value, GeometryOf(tensor)) : at::Tensor();
}

}  // namespace torch_lazy::lazy
