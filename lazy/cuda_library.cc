// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda_library.h"

#include <dlfcn.h>

#include <string>

#include "base/log.h"
#include "lazy/eager_device.h"

namespace torch_lazy::lazy {
namespace {

void* Open() {
  if (IsOnHost()) return nullptr;
  Dl_info ours;
  if (dladdr(reinterpret_cast<void*>(&FindInCudaLibrary), &ours) == 0) return nullptr;
  const std::string path = ours.dli_fname;
  const std::string library = path.substr(0, path.rfind('/') + 1) + "libtorch_lazy_cuda.so";
  void* const opened = dlopen(library.c_str(), RTLD_NOW);
  if (opened == nullptr) {
    base::WarnOnce("cuda_library", "steps are not replayed as CUDA graphs, nor products tuned: " + std::string(dlerror()));
  }
  return opened;
}

}  // namespace

void* FindInCudaLibrary(const char* name) {
  static void* const library = Open();
  return library == nullptr ? nullptr : dlsym(library, name);
}

}  // namespace torch_lazy::lazy
