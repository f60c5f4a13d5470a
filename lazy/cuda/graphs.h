// SPDX-License-Identifier: Apache-2.0
// CUDA graphs, as libtorch_lazy_cuda.so gives them.
#pragma once

#include <cstdint>

namespace torch_lazy::lazy {

// Work captured once, to be asked for again by one call. All CUDA graphs of a lane share a pool of memory, and so do
// all others: Note [Lanes].
struct CudaGraphs {
  // From now on the thread's work is captured, on a stream that is the current one until then. Throws. One capture at a
  // time: the caller holds DrawMutex (philox.h). What the work calls has run on this thread before, since a library may
  // make no handle in a capture.
  void* (*begin)(int lane);
  // The former stream is current again. Throws if something was done that cannot be captured; the CUDA graph is
  // destroyed then.
  void (*end)(void* graph);
  void (*seek)(void* graph, uint64_t offset);  // while capturing: the next draw lies so far behind where replays begin
  void (*replay)(void* graph);                 // on the current stream; draws begin at the default generator's offset
  void (*destroy)(void* graph);
};

// Of backend stand_in: nothing is captured. A plan's buffers stay where they were at its capture, and its steps run on
// them, so that all around a CUDA graph can be tested without a GPU.
inline constexpr CudaGraphs kEmulatedCudaGraphs{};

// Null where there are none: on the host, or without the library (lazy/cuda/load_library.h).
const CudaGraphs* FindCudaGraphs();

}  // namespace torch_lazy::lazy
