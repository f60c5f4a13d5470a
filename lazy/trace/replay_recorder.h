// SPDX-License-Identifier: Apache-2.0
// What a thread does while the calls of a function are recorded for replay (replay.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/intrusive_ptr.h>

#include "absl/container/flat_hash_set.h"
#include "lazy/cuda/philox.h"
#include "lazy/eager/geometry.h"
#include "lazy/ops/op.h"

namespace torch_lazy::lazy {

class Trace;

// A storage that is no result of the recorded calls, when they first touched it.
struct TouchedStorage {
  int32_t slot;
  uint64_t serial;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
  uint32_t version;  // the tensor's
};

// Random numbers drawn at once into memory that the function has just made; or, of a GPU, those that a recorded call
// will draw.
struct RecordedDraw {
  const Op* op = nullptr;  // null: the latter
  uint64_t serial = 0;     // of the storage
  Geometry geometry;
  size_t size_bytes = 0;
  torch::jit::Stack args;  // the tensor left out
  PhiloxDraw philox;       // what was drawn for the recorded call ...
  uint64_t per_thread = 0;
  std::vector<size_t> numbers;  // ... and is given to this and that call, as this number of them all and the next one

  // The same numbers of the generator, for the same use.
  bool IsLike(const RecordedDraw& other) const {
    return op == other.op && geometry == other.geometry && per_thread == other.per_thread && numbers == other.numbers;
  }
};

struct ReplayRecorder {
  std::shared_ptr<Trace> trace;  // that holds the calls, as long as nothing cuts it
  size_t first_call = 0;         // in the trace
  size_t first_number = 0;
  int64_t bytes_before = 0;           // of the trace's results
  absl::flat_hash_set<int32_t> seen;  // slots of `storages`
  uint64_t first_serial = 0;          // of storages made since
  std::vector<uint64_t> inputs;       // serial per input
  std::vector<uint32_t> versions;     // of the inputs, before
  std::vector<TouchedStorage> storages;
  std::vector<RecordedDraw> draws;
  bool draws_now = false;
  std::string broken;   // why the calls cannot be replayed; empty: they can
  bool is_cut = false;  // since the trace was cut within them, and may be there again
};

// As autograd counts writes.
inline uint32_t VersionOf(c10::TensorImpl* tensor) {
  return tensor->is_inference() ? 0 : tensor->version_counter().current_version();
}

// Of the calling thread; null if it records none for replay.
ReplayRecorder*& CurrentReplayRecorder();

// The calling thread does something that a replay would not repeat.
void BreakReplay(const std::string& why);

// Takes the next random numbers (philox.h) for a call that the thread records, and tells its recorder.
PhiloxDraw TakeRecordedDraw(uint64_t per_thread);

// Records a call that draws random numbers, if a replay can repeat it: then what it reads is no break while this lives.
class DrawRecorder {
 public:
  DrawRecorder(const Op& op, const torch::jit::Stack& stack);
  ~DrawRecorder();
  DrawRecorder(const DrawRecorder&) = delete;
  DrawRecorder& operator=(const DrawRecorder&) = delete;
};

}  // namespace torch_lazy::lazy
