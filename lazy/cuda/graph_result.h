// SPDX-License-Identifier: Apache-2.0
// Where a captured CUDA graph leaves a result, at each replay.
//
// Storages take the result over as it lies there. One that still holds it when the next replay is due gets memory of
// its own, and so does one whose address somebody asks for.
#pragma once

#include <memory>

#include <c10/core/Storage.h>

namespace torch_lazy::lazy {

class CudaGraphResult {
 public:
  explicit CudaGraphResult(c10::Storage memory) : memory_(std::make_shared<c10::Storage>(std::move(memory))) {}

  const c10::Storage& memory() const { return *memory_; }
  // A new content that lies here; what was held before has moved out.
  c10::Storage Lend();
  // Moves out what still lies here. In the current stream's order.
  void Vacate();

 private:
  std::shared_ptr<c10::Storage> memory_;
  c10::weak_intrusive_ptr<c10::StorageImpl> tenant_{c10::intrusive_ptr<c10::StorageImpl>()};
};

// True if the content lies in a home.
bool IsLent(const c10::Storage& content);

// If the content lies in a home, moves it into memory of its own.
void MoveOut(c10::StorageImpl* content);

}  // namespace torch_lazy::lazy
