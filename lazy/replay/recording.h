// SPDX-License-Identifier: Apache-2.0
// What one call of a function has done to its thread's trace: all that a replay (replay.h) needs to do the same.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

class LazyStorageImpl;

struct ReplayRecording {
  // A storage that the calls use, numbered by first use.
  struct Storage {
    // Where it comes from when the calls are replayed.
    enum class Kind { kInput, kCaptured, kDrawn, kNew } kind = Kind::kNew;
    size_t index = 0;        // of the input, the captured storage or the draw
    int32_t output = -1;     // of new and drawn: returned as this output (of several on one storage, the first), or ...
    int32_t left = -1;       // ... left behind as this storage
    bool is_result = false;  // of one of the calls
    bool written = false;
    size_t size_bytes = 0;
    at::ScalarType unwritten = at::ScalarType::Undefined;
    uint32_t version = 0;     // of a captured tensor, before the calls
    uint32_t num_writes = 0;  // of these, as autograd has counted them
    uint32_t first_call = 0;
    uint32_t calls_at_death = UINT32_MAX;  // for which calls it lives

    // From the same place, for the same use.
    bool IsLike(const Storage& other) const {
      return kind == other.kind && index == other.index && output == other.output && left == other.left &&
             is_result == other.is_result;
    }
  };
  struct Captured {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // the one that was used: while it lives, it must have the storage
    c10::VariableVersion version;                     // that tensor's
  };
  struct Output {
    int32_t storage = -1;
    int32_t input = -1;  // it is this input, or lies on its storage
    bool is_input = false;
    Geometry geometry;
    friend bool operator==(const Output&, const Output&) = default;
  };
  // The calls as they lie in the trie behind some other call, where they were once put.
  struct Place {
    const TrieNode* after = nullptr;
    std::vector<TrieNode*> path;
    std::vector<int32_t> slots;  // of the storages
    size_t first_slot = 0;       // what the trace had of these before
    size_t num_slots = 0;        // that are new
    uint64_t num_marks = 0;      // the trie's, when no trace was to be cut within these calls
  };

  std::shared_ptr<Trie> trie;    // of the calls
  std::vector<TrieNode*> calls;  // like these, on other slots
  std::vector<int32_t> uses;     // per call: the storages of its operands, then of its results
  std::vector<Storage> storages;
  std::vector<Captured> captured;
  std::vector<RecordedDraw> draws;
  std::vector<std::vector<size_t>>
      given_draws;  // draws of the pass before: calls have each as these numbers, and the next ones
  std::vector<Output> outputs;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> left;
  bool saves = false;
  std::vector<c10::IValue> numbers;  // of the calls
  std::vector<double> arguments;     // the numbers that the function was given
  int64_t new_bytes = 0;
  std::vector<Place> places;    // in the trie; guarded by the device lock
  std::weak_ptr<Trace> holder;  // the trace that the last replay has ended in; likewise

  // The same calls on the same captured storages, whatever the numbers.
  bool SameCalls(const ReplayRecording& other) const;
};

// Of the call that `recorder` has followed, from `inputs` to `outputs`; `given_draws`, `saves` and `left` as in
// Replay::End. If it cannot be replayed, nullopt, and `recorder->broken` says why.
std::optional<ReplayRecording> FinishRecording(ReplayRecorder* recorder, at::TensorList inputs,
                                               at::ArrayRef<double> arguments, at::ArrayRef<PhiloxDraw> given_draws,
                                               at::TensorList outputs, bool saves, std::vector<at::Tensor>* left);

// The storage, if the tensor is a dense one of the device; else null.
LazyStorageImpl* DenseStorageOf(const at::Tensor& tensor);
// False also if the tensor is dead.
bool HasOtherStorage(const c10::weak_intrusive_ptr<c10::TensorImpl>& tensor, const c10::StorageImpl* storage);
// A tensor of all its bytes.
at::Tensor BytesOf(c10::Storage storage);

}  // namespace torch_lazy::lazy
