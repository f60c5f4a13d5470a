// SPDX-License-Identifier: Apache-2.0
// What one call of a function has done to its thread's trace: all that a replay (replay.h) needs to do the same.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lazy/noting.h"
#include "lazy/trace.h"

namespace torch_lazy::lazy {

class LazyStorageImpl;

struct ReplayNote {
  // Where a slot's storage comes from when the calls are replayed.
  struct Source {
    enum class Kind { kInput, kCaptured, kDrawn, kNew } kind = Kind::kNew;
    size_t index = 0;        // of the input, the captured storage or the draw
    int32_t output = -1;     // of new and drawn: returned as this output (of several on one storage, the first), or ...
    int32_t left = -1;       // ... left behind as this storage
    friend bool operator==(const Source&, const Source&) = default;
  };
  struct Captured {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // the one that was used: it must still have the storage
  };
  struct Output {
    int32_t slot = -1;
    int32_t input = -1;      // it is this input, or lies on its storage
    bool is_input = false;
    Geometry geometry;
    friend bool operator==(const Output&, const Output&) = default;
  };

  std::shared_ptr<Trie> trie;        // of the path
  std::vector<TrieNode*> path;
  std::vector<Trace::Slot> slots;    // without contents and owners
  std::vector<Source> sources;       // per slot
  std::vector<Captured> captured;
  std::vector<Draw> draws;
  std::vector<Output> outputs;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> left;
  bool saves = false;
  std::vector<c10::IValue> numbers;  // of the trace
  std::vector<double> arguments;     // the numbers that the function was given
  int64_t new_bytes = 0;

  // The same calls on the same captured storages, whatever the numbers.
  bool SameCalls(const ReplayNote& other) const;
};

// Of the call that `noting` has followed, from `inputs` to `outputs`; `saves` and `left` as in Replay::End. If it cannot be replayed,
// nullopt, and `noting->broken` says why.
std::optional<ReplayNote> TakeNote(Noting* noting, at::TensorList inputs, at::ArrayRef<double> arguments, at::TensorList outputs,
                                   bool saves, std::vector<at::Tensor>* left);

// The storage, if the tensor is a dense one of the device; else null.
LazyStorageImpl* DenseStorageOf(const at::Tensor& tensor);
// A tensor of all its bytes.
at::Tensor BytesOf(c10::Storage storage);

}  // namespace torch_lazy::lazy
