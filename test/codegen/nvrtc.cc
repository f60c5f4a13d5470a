// SPDX-License-Identifier: Apache-2.0
#include "test/codegen/nvrtc.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"

namespace torch_lazy::codegen {
namespace {

using Program = void*;

void* OpenLibrary() {
  std::vector<std::string> folders = {""};
  const char* const given = std::getenv("LAZY_NVRTC_PATH");
  if (given != nullptr) folders.insert(folders.begin(), absl::StrCat(given, "/"));
  for (const std::string& folder : folders) {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
      void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) return library;
    }
  }
  return nullptr;
}

struct Nvrtc {
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*destroy)(Program*);
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// Null if it is not installed.
const Nvrtc* Load() {
  static const Nvrtc* const loaded = []() -> const Nvrtc* {
    void* const library = OpenLibrary();
    Nvrtc nvrtc;
    const bool complete = library != nullptr &&
                          Find(library, "nvrtcCreateProgram", &nvrtc.create) &&
                          Find(library, "nvrtcCompileProgram", &nvrtc.compile) &&
                          Find(library, "nvrtcGetProgramLogSize", &nvrtc.log_size) &&
                          Find(library, "nvrtcGetProgramLog", &nvrtc.log) &&
                          Find(library, "nvrtcGetCUBINSize", &nvrtc.cubin_size) &&
                          Find(library, "nvrtcDestroyProgram", &nvrtc.destroy);
    return complete ? new Nvrtc(nvrtc) : nullptr;
  }();
  return loaded;
}

}  // namespace

absl::Status CompileCuda(const std::string& source, const std::string& architecture) {
  const Nvrtc* const nvrtc = Load();
  if (nvrtc == nullptr)
    return absl::NotFoundError("no libnvrtc.so.13 or .12, also not in LAZY_NVRTC_PATH");
  Program program = nullptr;
  if (nvrtc->create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr) != 0)
    return absl::InternalError("nvrtcCreateProgram failed");
  const std::string target = absl::StrCat("--gpu-architecture=", architecture);
  const char* const options[] = {target.c_str(), "--std=c++17", "--fmad=false"};
  const int error = nvrtc->compile(program, 3, options);
  size_t log_bytes = 0, cubin_bytes = 0;
  nvrtc->log_size(program, &log_bytes);
  std::string log(log_bytes, '\0');
  nvrtc->log(program, log.data());
  nvrtc->cubin_size(program, &cubin_bytes);
  nvrtc->destroy(&program);
  if (error == 0 && cubin_bytes > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("NVRTC's error ", error, " for ", architecture,
                                                 "\n", log.c_str(), "\n", source));
}

}  // namespace torch_lazy::codegen
