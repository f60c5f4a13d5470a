// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/load_kernels.h"

#include <dlfcn.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/compile/memory_file.h"
#include "base/status.h"

namespace torch_lazy::backends {

absl::StatusOr<std::vector<void*>> LoadKernels(const std::string& library, absl::Span<const codegen::Kernel> kernels) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string error = dlerror();
    return absl::StrContains(error, "undefined symbol") ? absl::InvalidArgumentError(error)
                                                        : absl::InternalError(error);
  }
  std::vector<void*> functions;
  for (const codegen::Kernel& kernel : kernels) {
    functions.push_back(dlsym(handle, kernel.name.c_str()));
    if (functions.back() != nullptr) continue;
    dlclose(handle);
    return absl::InvalidArgumentError(absl::StrCat(library, ": no symbol ", kernel.name));
  }
  return functions;
}

// dlopen takes a library that has the same path for the same library, so the file's number must
// stay taken.
absl::StatusOr<std::vector<void*>> LoadCode(const std::string& code, absl::Span<const codegen::Kernel> kernels) {
  LAZY_ASSIGN_OR_RETURN(MemoryFile made, MemoryFile::Make());
  LAZY_RETURN_IF_ERROR(made.Write(code));
  const std::string path = absl::StrCat("/proc/self/fd/", made.file());
  absl::StatusOr<std::vector<void*>> functions = LoadKernels(path, kernels);
  if (functions.ok()) new MemoryFile(std::move(made));
  return functions;
}

}  // namespace torch_lazy::backends
