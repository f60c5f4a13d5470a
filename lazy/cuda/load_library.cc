// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda/load_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include <string>

#include "base/log.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::lazy {
namespace {

// In which our library lies, with a "/" at its end; empty if nobody knows.
const std::string& Folder() {
  static const std::string& folder = *[] {
    Dl_info ours;
    if (dladdr(reinterpret_cast<void*>(&FindInCudaLibrary), &ours) == 0) return new std::string;
    const std::string path = ours.dli_fname;
    const std::string within = path.substr(0, path.rfind('/') + 1);
    char folder[PATH_MAX];
    const bool is_found = realpath(within.empty() ? "." : within.c_str(), folder) != nullptr;
    return new std::string(is_found ? std::string(folder) + "/" : "");
  }();
  return folder;
}

// Asked while it is loaded: its path may be relative to what the current folder is then.
__attribute__((constructor)) void FindFolder() { Folder(); }

void* OpenLibrary() {
  if (IsOnHost() || Folder().empty()) return nullptr;
  const std::string library = Folder() + "libtorch_lazy_cuda.so";
  void* const opened = dlopen(library.c_str(), RTLD_NOW);
  if (opened == nullptr) {
    base::WarnOnce("cuda_library",
                   "steps are not replayed as CUDA graphs, nor products tuned: " + std::string(dlerror()));
  }
  return opened;
}

}  // namespace

void* FindInCudaLibrary(const char* name) {
  static void* const library = OpenLibrary();
  return library == nullptr ? nullptr : dlsym(library, name);
}

}  // namespace torch_lazy::lazy
