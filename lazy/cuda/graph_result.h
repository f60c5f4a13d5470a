// SPDX-License-Identifier: Apache-2.0
// Contents of a thread's: where a captured CUDA graph leaves a result at each replay, and what was sent to a lane.
//
// Storages take the result over as it lies there. One that still holds it when the next replay is due gets memory of
// its own, and so does one whose address somebody asks for, or that another thread uses: the next replay may be asked
// for at any time then.
#pragma once

#include <memory>

#include <c10/core/Storage.h>

namespace torch_lazy::lazy {

class CudaGraphResult {
 public:
  explicit CudaGraphResult(c10::Storage memory) : memory_(std::make_shared<c10::Storage>(std::move(memory))) {}

  const c10::Storage& memory() const { return *memory_; }
  // A new content that lies here, made on the lane (lanes.h); what was held before has moved out.
  c10::Storage Lend(int lane);
  // True if somebody still holds one.
  bool IsHeld() const { return tenant_.use_count() != 0; }
  // Moves out what still lies here. In the current stream's order.
  void Vacate();

 private:
  std::shared_ptr<c10::Storage> memory_;
  c10::weak_intrusive_ptr<c10::StorageImpl> tenant_{c10::intrusive_ptr<c10::StorageImpl>()};
};

// A content in memory that the calling thread fills on the lane, and that was allocated for the lane's stream.
c10::Storage MakeOnLane(c10::Storage memory, int lane);

// True if the content lies in a home.
bool IsLent(const c10::Storage& content);

// The lane on which the content was made; kMainStream for any other.
int LaneOf(const c10::Storage& content);

// The memory that an allocator gave for the content: its home's, or its own.
c10::Storage MemoryOf(const c10::Storage& content);

// If the content lies in a home of another thread's, or was made on its lane, moves it into memory of its own. To be
// called before the calling thread asks for its address.
void TakeFromOtherThread(const c10::Storage& content);

// If the content lies in a home, or was made on a lane, moves it into memory of its own.
void MoveOut(c10::StorageImpl* content);

}  // namespace torch_lazy::lazy
