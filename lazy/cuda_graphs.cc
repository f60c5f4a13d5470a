// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda_graphs.h"

#include <dlfcn.h>

#include <string>

#include "base/flags.h"
#include "base/log.h"
#include "lazy/eager_device.h"

namespace torch_lazy::lazy {
namespace {

const CudaGraphs* Open() {
  if (base::IsDisabled("graphs")) return nullptr;
  if (base::Backend() == base::BackendChoice::kStandIn) return &kEmulatedGraphs;
  if (IsOnHost()) return nullptr;
  Dl_info ours;
  if (dladdr(reinterpret_cast<void*>(&FindCudaGraphs), &ours) == 0) return nullptr;
  const std::string path = ours.dli_fname;
  const std::string library = path.substr(0, path.rfind('/') + 1) + "libtorch_lazy_cuda.so";
  void* const opened = dlopen(library.c_str(), RTLD_NOW);
  if (opened == nullptr) {
    base::WarnOnce("graphs", "steps are not replayed as CUDA graphs: " + std::string(dlerror()));
    return nullptr;
  }
  const auto graphs = reinterpret_cast<const CudaGraphs* (*)()>(dlsym(opened, "torch_lazy_cuda_graphs"));
  return graphs == nullptr ? nullptr : graphs();
}

}  // namespace

const CudaGraphs* FindCudaGraphs() {
  static const CudaGraphs* const graphs = Open();
  return graphs;
}

}  // namespace torch_lazy::lazy
