// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda/graphs.h"

#include "base/flags.h"
#include "lazy/cuda/load_library.h"

namespace torch_lazy::lazy {
namespace {

const CudaGraphs* FindThem() {
  if (base::IsDisabled("graphs")) return nullptr;
  if (base::Backend() == base::BackendChoice::kCudaEmulator) return &kEmulatedCudaGraphs;
  const auto graphs = reinterpret_cast<const CudaGraphs* (*)()>(FindInCudaLibrary("torch_lazy_cuda_graphs"));
  return graphs == nullptr ? nullptr : graphs();
}

}  // namespace

const CudaGraphs* FindCudaGraphs() {
  static const CudaGraphs* const graphs = FindThem();
  return graphs;
}

}  // namespace torch_lazy::lazy
