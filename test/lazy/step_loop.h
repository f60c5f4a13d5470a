// SPDX-License-Identifier: Apache-2.0
// Calls of a loop as the step detector sees them: nodes and slots, made by hand.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "lazy/trace/step_detector.h"
#include "lazy/trace/trie.h"
#include "lazy/trace/unlike_steps.h"

namespace torch_lazy::lazy {

class StepLoop {
 public:
  struct Operand {
    int32_t slot;
    bool written = false;
  };
  static Operand Written(int32_t slot) { return {slot, true}; }

  // A storage that held something before the trace: a parameter, a batch. The next call is the first to touch it.
  int32_t Older() { return NewSlot(/*size_bytes=*/4, /*external=*/true, /*older=*/true); }
  // Memory that nobody has filled.
  int32_t Empty(size_t size_bytes) { return NewSlot(size_bytes, /*external=*/true, /*older=*/false); }
  // Of the operands of all calls from now on.
  void SetSize(int64_t size) { size_ = size; }
  void SetOwner(int32_t slot, LazyStorageImpl* owner) { slots_[static_cast<size_t>(slot)].owner = owner; }

  // A call, by a number for its operator and sizes, and its result.
  int32_t Call(int64_t word, std::initializer_list<Operand> operands, size_t result_bytes = 4) {
    Append(word, operands);
    const int32_t result = NewSlot(result_bytes, /*external=*/false, /*older=*/false);
    slots_.back().first_call = static_cast<uint32_t>(calls_.size() - 1);
    return result;
  }
  // A call that only writes what it is given.
  void Update(int64_t word, std::initializer_list<Operand> operands) { Append(word, operands); }

  // As after each recorded call.
  ClosedStep Advance() { return detector_.Advance(calls_, slots_); }
  size_t EndOfUnlikeStep() { return unlike_.Advance(calls_, slots_, whole_); }
  // The next so many calls are those of a function that is replayed.
  void ReplayNext(size_t num_calls) { whole_.push_back({calls_.size(), calls_.size() + num_calls}); }
  uint64_t Tail() const { return UnlikeSteps::Tail(calls_, slots_, calls_.size()); }

 private:
  void Append(int64_t word, std::initializer_list<Operand> operands) {
    std::vector<int32_t> operand_slots;
    for (const Operand& operand : operands) operand_slots.push_back(operand.slot);
    static const Op& op = OpOf(c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor"));
    at_ = at_->Grow(op, {word, size_}, operand_slots, std::make_shared<CallShape>(), 0);
    Geometry geometry;
    geometry.sizes = {size_};
    for (const Operand& operand : operands) at_->operands.push_back({operand.slot, -1, 0, operand.written, geometry});
    calls_.push_back(at_);
  }
  int32_t NewSlot(size_t size_bytes, bool external, bool older) {
    TraceSlot& slot = slots_.emplace_back();
    slot.size_bytes = size_bytes;
    slot.external = external;
    slot.older = older;
    slot.first_call = static_cast<uint32_t>(calls_.size());
    slot.serial = slots_.size();
    return static_cast<int32_t>(slots_.size() - 1);
  }

  int64_t size_ = 4;
  Trie trie_;
  TrieNode* at_ = trie_.root();
  StepDetector::Calls calls_;
  StepDetector::Slots slots_;
  StepDetector detector_;
  UnlikeSteps unlike_;
  std::vector<UnlikeSteps::Range> whole_;
};

}  // namespace torch_lazy::lazy
