// SPDX-License-Identifier: Apache-2.0
// What a thread does while the calls of a function are noted for replay (replay.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/intrusive_ptr.h>

#include "lazy/geometry.h"
#include "lazy/op.h"

namespace torch_lazy::lazy {

class Trace;

// A storage from outside a trace, when the trace first touched it.
struct NotedStorage {
  int32_t slot;
  uint64_t serial;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
};

// Random numbers drawn at once into memory that the function has just made.
struct Draw {
  uint64_t serial;  // of the storage
  const Op* op;
  Geometry geometry;
  size_t size_bytes;
  torch::jit::Stack args;  // the tensor left out
};

struct Noting {
  std::shared_ptr<Trace> trace;  // that holds the calls, as long as nothing cuts it
  uint64_t first_serial;         // of storages made since
  std::vector<uint64_t> inputs;  // serial per input
  std::vector<NotedStorage> storages;
  std::vector<Draw> draws;
  bool draws_now = false;
  std::string broken;            // why the calls cannot be replayed; empty: they can
};

// Of the calling thread; null if it notes nothing.
Noting*& CurrentNoting();

// The calling thread does something that a replay would not repeat.
void BreakNoting(const std::string& why);

// Notes a call that draws random numbers, if a replay can repeat it: then what it reads is no break while this lives.
class NoteDraw {
 public:
  NoteDraw(const Op& op, const torch::jit::Stack& stack);
  ~NoteDraw();
  NoteDraw(const NoteDraw&) = delete;
  NoteDraw& operator=(const NoteDraw&) = delete;
};

}  // namespace torch_lazy::lazy
