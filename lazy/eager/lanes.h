// SPDX-License-Identifier: Apache-2.0
// Streams of a GPU beside the main one, for threads that share a model.
//
// Note [Lanes]
// All that a GPU does for the device is asked of one stream, the *main* one, which is CUDA's current stream. There,
// eight threads that each replay a CUDA graph are as fast as one. A *lane* is a stream for such replays alone:
// - Before a replay, its lane waits for what the main stream was asked for until then, unless that is done.
// - A replay on a lane writes nothing but its results, in homes of its own. A content that lies there knows its lane
//   (lazy/cuda/graph_result.h). The host reads it on that lane, and so may other replays on it.
// - A thread whose last replay was on a lane sends new inputs there, too, into memory that is the lane's. Eight threads
//   that send theirs by the main stream would wait for each other.
// - Before anything else is asked of the main stream, that stream waits for all lanes. While anything is, lanes are
//   asked for nothing: a run on the main stream comes before or after a replay, never amid it.
// - Other memory belongs to the main stream. What a replay on a lane uses is told to PyTorch's allocator, which then
//   gives it to nobody else before the lane has come to an end with it.
// - CUDA graphs of one lane share memory with each other, and with no other's.
// Where the program has made another stream CUDA's current one, no lane is used.
#pragma once

#include <mutex>
#include <optional>

#include <c10/core/Storage.h>

#include "lazy/eager/eager_device.h"

namespace torch_lazy::lazy {

constexpr int kMainStream = 0;  // in the place of a lane's number
constexpr int kNumLanes = 8;    // numbered from 1 on; each may cost a library's workspace

// The lane of the calling thread, which further threads may share.
int LaneOfThread();

// Where the calling thread had better send its inputs: where its last replay ran.
int LaneForInputs();
void NoteReplay(int lane);

// While one lives, its thread asks the main stream for work. On the host it does nothing.
class MainWork {
 public:
  MainWork();
  ~MainWork();
  MainWork(const MainWork&) = delete;
  MainWork& operator=(const MainWork&) = delete;

 private:
  const bool is_on_gpu_;
};

// While one lives, the current stream is the lane's. Where lanes have no streams, as in the emulation, it does nothing.
class LaneWork {
 public:
  // False where the main stream is not the device's default one, or the thread is amid work for it.
  static bool IsPossible();
  // True if the thread is amid work for a lane.
  static bool IsAmid();

  explicit LaneWork(int lane);
  ~LaneWork();
  LaneWork(const LaneWork&) = delete;
  LaneWork& operator=(const LaneWork&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  std::optional<OnStream> on_;
  const int lane_;
};

// The main stream waits for all lanes. To be called before a content is handed to who may ask anything of the main
// stream.
void JoinLanes();

// The memory, which PyTorch's allocator gave, is used on the lane: Note [Lanes].
void TellAllocator(const c10::Storage& memory, int lane);

// The stream on which a lane's results may be read; nothing for kMainStream, and where lanes have no streams.
std::optional<c10::Stream> StreamOfLane(int lane);

}  // namespace torch_lazy::lazy
