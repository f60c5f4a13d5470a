// SPDX-License-Identifier: Apache-2.0
// libtorch_lazy_cuda.so: CUDA graphs by at::cuda::CUDAGraph, which keeps what ATen allocates meanwhile out of others'
// reach.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "lazy/cuda/graphs.h"
#include "torch_compat/captured_generators.h"

namespace torch_lazy::lazy {
namespace {

// What one CUDA graph of a device's lane allocates while it is captured is dead when the next one runs, so one pool
// will do. What outlives a replay, results and the homes of parameters, must be allocated before: a CUDA graph captured
// earlier has used the same memory.
struct OfLane {
  const at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  // Libraries keep memory for each stream that they work on, so all captures take the same.
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
};

template <typename End>
void IfItHasNotEnded(const End& end) {
  try {
    end();
  } catch (const std::exception&) {
  }
}

// PyTorch's generator keeps a set of the CUDA graphs that know of it, which nothing guards: a capture adds one, and the
// end of a CUDA graph takes one out. Threads with lanes do both at a time.
std::mutex& GraphsOfGenerator() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

// What is asked of the later stream from now on begins when the earlier one has done what was asked of it.
void Follow(const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
  at::cuda::CUDAEvent event;
  event.record(earlier);
  event.block(later);
}

struct Graph : at::cuda::CUDAGraph {
  std::optional<c10::cuda::CUDAStreamGuard> stream;  // while capturing
  bool has_entered = false;

  // The begin of a capture writes where all CUDA graphs' draws begin. Replays that were asked for before are to read
  // what was there, and later ones what they write themselves.
  void Enter(const OfLane& lane) {
    stream.emplace(lane.stream);
    RefuseCaptured();
    Follow(lane.stream, stream->original_stream());
    has_entered = true;
    Begin(lane.pool);
  }

  void Leave() {
    has_entered = false;
    Follow(stream->original_stream(), stream->current_stream());
    stream.reset();
  }

  ~Graph() {
    if (has_entered) IfItHasNotEnded([this] { Leave(); });  // its capture has failed
  }

  // PyTorch finds later that a stream is captured, and then its CUDA graph cannot even end.
  static void RefuseCaptured() {
    TORCH_CHECK(c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None,
                "lazy: the stream is being captured");
  }

  void Begin(at::cuda::MempoolId_t pool) {
    const std::lock_guard<std::mutex> lock(GraphsOfGenerator());
    RefuseCaptured();
    try {
      capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    } catch (...) {
      ForgetCapture();
      throw;
    }
  }

  void End() {
    try {
      capture_end();
    } catch (...) {
      ForgetCapture();
      capture_ended_ = true;  // lets go of the pool
      throw;
    }
  }

  void Seek(uint64_t offset) { torch_compat::SeekInCapture(captured_generator_states_, capture_id_, offset); }

  // What a capture that CUDA refuses leaves behind in PyTorch: its allocators, of the GPU's memory and of the host's,
  // and its generators still believe in it, and would refuse every later one.
  void ForgetCapture() {
    cudaGetLastError();
    IfItHasNotEnded([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(capture_dev_, mempool_id_); });
    IfItHasNotEnded([&] { at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(mempool_id_); });
    torch_compat::ForgetCapture(captured_generator_states_);
  }
};

void Destroy(void* graph) {
  const std::lock_guard<std::mutex> lock(GraphsOfGenerator());
  delete static_cast<Graph*>(graph);
}

using OwnedGraph = std::unique_ptr<Graph, decltype(&Destroy)>;

// A CUDA graph that stays. PyTorch refuses to capture into a pool, of the GPU's memory or of the host's, that has lost
// its last CUDA graph.
void KeepPool(const OfLane& lane) {
  OwnedGraph graph(new Graph, &Destroy);
  const c10::cuda::CUDAStreamGuard on(lane.stream);
  auto written = std::make_unique<at::Tensor>(at::empty({1}, at::kCUDA));
  graph->Begin(lane.pool);
  written->zero_();
  graph->End();
  graph.release();
  written.release();
}

// Of the current device.
const OfLane& ThisDevices(int lane) {
  static auto* const lock = new std::mutex;
  static auto* const all = new std::map<std::pair<int, int>, OfLane>;
  const std::lock_guard<std::mutex> held(*lock);
  const auto [found, is_new] = all->try_emplace({c10::cuda::current_device(), lane});
  if (is_new) KeepPool(found->second);
  return found->second;
}

void* Begin(int number) {
  const OfLane& lane = ThisDevices(number);
  OwnedGraph graph(new Graph, &Destroy);
  graph->Enter(lane);
  return graph.release();
}

void End(void* captured) {
  OwnedGraph graph(static_cast<Graph*>(captured), &Destroy);
  graph->End();
  graph->Leave();
  graph.release();
}

constexpr CudaGraphs kGraphs{
    .begin = &Begin,
    .end = &End,
    .seek = [](void* graph, uint64_t offset) { static_cast<Graph*>(graph)->Seek(offset); },
    .replay = [](void* graph) { static_cast<Graph*>(graph)->replay(); },
    .destroy = &Destroy,
};

}  // namespace
}  // namespace torch_lazy::lazy

extern "C" const torch_lazy::lazy::CudaGraphs* torch_lazy_cuda_graphs() { return &torch_lazy::lazy::kGraphs; }
