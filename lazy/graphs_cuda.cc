// SPDX-License-Identifier: Apache-2.0
// libtorch_lazy_cuda.so: graphs by at::cuda::CUDAGraph, which keeps what ATen allocates meanwhile out of others' reach.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include <optional>

#include "lazy/cuda_graphs.h"

namespace torch_lazy::lazy {
namespace {

// Temporaries of one graph are dead when the next one runs, and results are kept by who captured them: so one pool will do.
at::cuda::MempoolId_t Pool() {
  static const at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  return pool;
}

// Libraries keep memory for each stream that they work on, so all captures take the same.
c10::cuda::CUDAStream CaptureStream() {
  static const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  return stream;
}

struct Graph {
  at::cuda::CUDAGraph graph;
  std::optional<c10::cuda::CUDAStreamGuard> stream;  // while capturing
};

void* Begin() {
  auto graph = std::make_unique<Graph>();
  graph->stream.emplace(CaptureStream());
  graph->graph.capture_begin(Pool(), cudaStreamCaptureModeThreadLocal);
  return graph.release();
}

void End(void* captured) {
  std::unique_ptr<Graph> graph(static_cast<Graph*>(captured));
  graph->graph.capture_end();
  graph->stream.reset();
  graph.release();
}

constexpr CudaGraphs kGraphs{
    .begin = &Begin,
    .end = &End,
    .replay = [](void* graph) { static_cast<Graph*>(graph)->graph.replay(); },
    .destroy = [](void* graph) { delete static_cast<Graph*>(graph); },
};

}  // namespace
}  // namespace torch_lazy::lazy

extern "C" const torch_lazy::lazy::CudaGraphs* torch_lazy_cuda_graphs() { return &torch_lazy::lazy::kGraphs; }
