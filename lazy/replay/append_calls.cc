// SPDX-License-Identifier: Apache-2.0
#include "lazy/replay/append_calls.h"

#include <algorithm>
#include <utility>

#include "lazy/calls/append_call.h"
#include "lazy/cuts/cut.h"
#include "lazy/host/lock.h"
#include "lazy/ops/call_settings.h"
#include "lazy/trace/cut_rule.h"
#include "lazy/trace/new_slots.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"

namespace torch_lazy::lazy {
namespace {

using Storage = ReplayRecording::Storage;
using Place = ReplayRecording::Place;

constexpr size_t kMostPlaces = 8;  // that a recording remembers

// The storage, which the trace has not known so far, takes this slot.
void Attach(const std::shared_ptr<Trace>& trace, int32_t slot, LazyStorageImpl* storage) {
  Trace::Slot& at = trace->slots[static_cast<size_t>(slot)];
  at.owner = storage;
  at.serial = storage->serial();
  if (at.external) {
    at.content = storage->content;
    at.older = static_cast<bool>(storage->content);
    at.stamp = storage->stamp();
    at.unwritten = storage->unwritten;
  }
  ComeAfter(*storage, slot, trace);
  storage->JoinTrace(trace, slot);
}

// The trace writes the storage from here on.
void MarkWritten(const std::shared_ptr<Trace>& trace, int32_t slot, LazyStorageImpl* storage) {
  if (std::exchange(trace->slots[static_cast<size_t>(slot)].written, true)) return;
  ComeAfter(*storage, slot, trace);
  storage->writer = trace.get();
  storage->Arm();
}

// What has to be cut before a call comes, and why; null: nothing.
struct Before {
  std::shared_ptr<Trace> trace;
  const char* reason = nullptr;
};

class Appender {
 public:
  Appender(ReplayRecording* recording, std::vector<c10::IValue> numbers, std::vector<c10::Storage>* storages)
      : recording_(*recording), numbers_(std::move(numbers)), storages_(*storages), is_made_(storages_.size()) {}

  void Append() {
    EndFullStep();
    if (!PutAll()) RecordOneByOne();
    Locked lock(DeviceLock());
    recording_.holder = ThreadTrace();
    ThreadTrace()->replays = true;
  }

 private:
  LazyStorageImpl* Of(size_t s) const { return static_cast<LazyStorageImpl*>(storages_[s].unsafeGetStorageImpl()); }

  // Of a call with this storage. The device lock is held.
  std::shared_ptr<Trace> ConflictWith(size_t s, const std::shared_ptr<Trace>& trace) const {
    if (!storages_[s]) return nullptr;
    const Storage& recorded = recording_.storages[s];
    // A result is left behind in the storage that the recording has made, which the trace knows by now as another slot.
    if (recorded.is_result && !is_made_[s] && SlotOf(*Of(s), trace.get()) >= 0) return trace;
    return ConflictOver(*Of(s), recorded.written, trace.get());
  }

  // Of calls that use `storages`. The device lock is held.
  template <typename Storages>
  Before CutBefore(const Storages& storages) const {
    const std::shared_ptr<Trace>& trace = ThreadTrace();
    if (trace->ends_step) return {trace, trace->what_ends()};
    const char* const unlike = trace->num_calls() != 0
                                   ? UnlikeSettings(trace->settings(), SettingsOf(recording_.calls.front()->words()[0]))
                                   : nullptr;
    if (unlike != nullptr) return {trace, unlike};
    for (const auto s : storages) {
      if (std::shared_ptr<Trace> conflict = ConflictWith(static_cast<size_t>(s), trace))
        return {conflict, conflict == trace ? "replay" : "another thread"};
    }
    return {};
  }

  // A trace that already holds these calls, and has no room for as much again as it has, is a step: it would be cut
  // within the next.
  void EndFullStep() const {
    std::shared_ptr<Trace> trace;
    {
      Locked lock(DeviceLock());
      trace = RecordingTrace();
      if (recording_.holder.lock() != trace || HasRoomFor(*trace, trace->num_calls(), trace->new_bytes)) return;
    }
    CutAndGoOn(trace, "step");
  }

  // Puts all calls where they have been put before: behind the same calls, with the same storages known. False if there
  // is no such place.
  bool PutAll() {
    std::vector<size_t> all(storages_.size());
    for (size_t s = 0; s < all.size(); ++s) all[s] = s;
    const char* full = nullptr;
    while (true) {
      Before before;
      {
        Locked lock(DeviceLock());
        before = CutBefore(all);
        if (before.trace == nullptr) {
          const Place* place = FindPlace();
          if (place == nullptr) return false;
          Put(*place);
          full = MustCut(ThreadTrace().get(), /*grown=*/false);
          break;
        }
      }
      CutAndGoOn(before.trace, before.reason);
    }
    if (full != nullptr) CutThreadTraceAndGoOn(full);
    return true;
  }

  // The device lock is held.
  const Place* FindPlace() {
    const Trace& trace = *ThreadTrace();
    if (recording_.trie != trace.trie || !HasRoomFor(trace, recording_.calls.size(), recording_.new_bytes))
      return nullptr;
    const auto place = std::ranges::find(recording_.places, trace.at->node, &Place::after);
    if (place == recording_.places.end()) return nullptr;
    if (place->num_marks != recording_.trie->num_marks()) {
      const auto ends_trace = [](const TrieNode* call) { return call->expected->ends_trace(); };
      if (std::any_of(place->path.begin(), place->path.end() - 1, ends_trace)) {
        recording_.places.erase(place);
        return nullptr;
      }
      place->num_marks = recording_.trie->num_marks();
    }
    NewSlots others(0);
    int32_t num_others = 0;
    for (size_t s = 0; s < storages_.size(); ++s) {
      if (!storages_[s]) continue;
      const int32_t slot = SlotOf(*Of(s), &trace);
      const bool is_known = static_cast<size_t>(place->slots[s]) < place->first_slot;
      if (is_known ? slot != place->slots[s] : slot >= 0 || others.Of(Of(s)) != num_others++) return nullptr;
    }
    return &*place;
  }

  // The device lock is held.
  void Put(const Place& place) {
    const std::shared_ptr<Trace>& trace = ThreadTrace();
    const uint32_t first_call = static_cast<uint32_t>(trace->path.size()),
                   num_calls = static_cast<uint32_t>(recording_.calls.size());
    trace->path.insert(trace->path.end(), place.path.begin(), place.path.end());
    trace->replayed.push_back({first_call, first_call + num_calls});
    trace->at = place.path.back()->expected;
    trace->numbers.insert(trace->numbers.end(), std::make_move_iterator(numbers_.begin()),
                          std::make_move_iterator(numbers_.end()));
    trace->new_bytes += recording_.new_bytes;
    trace->slots.resize(place.first_slot + place.num_slots);
    for (size_t s = 0; s < storages_.size(); ++s) {
      const Storage& recorded = recording_.storages[s];
      const int32_t slot = place.slots[s];
      if (static_cast<size_t>(slot) >= place.first_slot) {
        Trace::Slot& at = trace->slots[static_cast<size_t>(slot)];
        at.size_bytes = recorded.size_bytes;
        at.external = !recorded.is_result;
        at.unwritten = recorded.unwritten;
        at.first_call = first_call + recorded.first_call;
        if (!storages_[s]) {
          at.written = recorded.written;
          at.calls_at_death = first_call + std::min(recorded.calls_at_death, num_calls);
          continue;
        }
        Attach(trace, slot, Of(s));
      }
      if (recorded.written) MarkWritten(trace, slot, Of(s));
    }
  }

  // As the function would: what dies within it has a storage for that long, and the trace may be cut in between.
  void RecordOneByOne() {
    const std::vector<c10::Storage> given = storages_;
    std::vector<size_t> dying;  // in the order of their deaths
    for (size_t s = 0; s < given.size(); ++s) {
      if (!given[s]) dying.push_back(s);
    }
    std::ranges::stable_sort(dying, {}, [&](size_t s) { return recording_.storages[s].calls_at_death; });
    auto next_death = dying.begin();
    Place place;
    const int32_t* uses = recording_.uses.data();
    for (size_t k = 0; k < recording_.calls.size(); ++k) {
      const size_t num_uses = NumUses(*recording_.calls[k]);
      RecordOne(k, {uses, num_uses}, &place);
      uses += num_uses;
      for (; next_death != dying.end() && recording_.storages[*next_death].calls_at_death == k + 1; ++next_death)
        storages_[*next_death] = {};
    }
    if (place.path.size() == recording_.calls.size()) Remember(std::move(place));
    storages_ = given;
  }

  static size_t NumUses(const TrieNode& call) {
    size_t num_uses = call.operands.size();
    for (const ResultShape& result : call.shape->results) num_uses += result.defined && result.arg < 0;
    return num_uses;
  }

  // `uses`: the storages of call `k`. `place` goes on with it, or begins anew where the trace was cut before.
  void RecordOne(size_t k, c10::ArrayRef<int32_t> uses, Place* place) {
    const TrieNode& call = *recording_.calls[k];
    for (const int32_t s : uses.slice(0, call.operands.size())) {
      const ReplayRecording::Storage& recorded = recording_.storages[static_cast<size_t>(s)];
      if (!storages_[static_cast<size_t>(s)])
        storages_[static_cast<size_t>(s)] = MakeStorage(recorded.size_bytes, recorded.unwritten);
    }
    const char* full = nullptr;  // the reason to cut after the call
    while (true) {
      Before before;
      {
        Locked lock(DeviceLock());
        before = CutBefore(uses);
        if (before.trace == nullptr) {
          full = Step(k, uses, place);
          break;
        }
      }
      CutAndGoOn(before.trace, before.reason);
    }
    if (full != nullptr) CutThreadTraceAndGoOn(full);
  }

  // Returns the reason to cut after the call, or null. The device lock is held.
  const char* Step(size_t k, c10::ArrayRef<int32_t> uses, Place* place) {
    const TrieNode& call = *recording_.calls[k];
    const std::shared_ptr<Trace>& trace = ThreadTrace();
    const size_t num_calls = trace->num_calls();
    if (place->path.empty() || place->path.back()->expected != trace->at)
      trace->replayed.push_back({num_calls, num_calls + recording_.calls.size() - k});
    if (place->path.empty() || place->path.back()->expected != trace->at) {
      *place = Place();
      place->after = trace->at->node;
      place->slots.assign(storages_.size(), -1);
      place->first_slot = trace->slots.size();
    }
    c10::SmallVector<CallOperand, 8> operands;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const NodeOperand& operand = call.operands[i];
      operands.push_back(
          {Of(static_cast<size_t>(uses[i])), /*tensor=*/nullptr, operand.item, operand.arg, operand.written});
    }
    c10::SmallVector<int32_t, 8> slots;
    AssignSlots(operands, *trace, &slots);
    bool grown = false;
    TrieNode* const node = NodeLike(call, slots, trace.get(), &grown);
    TouchOperands(operands, slots, trace);
    for (size_t i = 0; i < call.number_args.size(); ++i) trace->numbers.push_back(std::move(numbers_[next_number_++]));
    const int32_t* result = uses.data() + call.operands.size();
    for (const ResultShape& shape : call.shape->results) {
      if (!shape.defined || shape.arg >= 0) continue;
      slots.push_back(static_cast<int32_t>(trace->slots.size()));
      is_made_[static_cast<size_t>(*result)] = true;
      c10::Storage& storage = storages_[static_cast<size_t>(*result++)];
      if (!storage) storage = MakeStorage(shape.size_bytes);
      AddResult(static_cast<LazyStorageImpl*>(storage.unsafeGetStorageImpl()), trace);
    }
    for (size_t i = 0; i < uses.size(); ++i) place->slots[static_cast<size_t>(uses[i])] = slots[i];
    place->path.push_back(node);
    place->num_slots = trace->slots.size() - place->first_slot;
    return StepTo(node->expected, grown, trace.get());
  }

  void Remember(Place place) {
    std::shared_ptr<Trie> former;  // ended outside the lock
    Locked lock(DeviceLock());
    const std::shared_ptr<Trace>& trace = ThreadTrace();
    if (trace->at != place.path.back()->expected) return;  // cut since
    if (recording_.trie != trace->trie) {
      former = std::exchange(recording_.trie, trace->trie);
      recording_.calls = place.path;
      recording_.places.clear();
    }
    place.num_marks = recording_.trie->num_marks();
    std::erase_if(recording_.places, [&](const Place& known) { return known.after == place.after; });
    if (recording_.places.size() == kMostPlaces) recording_.places.erase(recording_.places.begin());
    recording_.places.push_back(std::move(place));
  }

  ReplayRecording& recording_;
  std::vector<c10::IValue> numbers_;
  size_t next_number_ = 0;               // of those that are recorded one by one
  std::vector<c10::Storage>& storages_;  // of each of the recording's that has one
  std::vector<bool> is_made_;            // results of calls recorded so far, one by one
};

}  // namespace

void AppendCalls(ReplayRecording* recording, std::vector<c10::IValue> numbers, std::vector<c10::Storage>* storages) {
  Appender(recording, std::move(numbers), storages).Append();
}

}  // namespace torch_lazy::lazy
