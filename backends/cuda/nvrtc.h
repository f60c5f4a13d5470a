// SPDX-License-Identifier: Apache-2.0
// NVRTC, the compiler of CUDA C++, found while the program runs. Needs no GPU.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace torch_lazy::backends::cuda {

using NvrtcResult = int;  // 0: success
using NvrtcProgram = struct _nvrtcProgram*;

// X(Name, parameters)
#define TORCH_LAZY_NVRTC_LIST(X)                                                             \
  X(Version, (int* major, int* minor))                                                       \
  X(CreateProgram, (NvrtcProgram * program, const char* text, const char* name, int headers, \
                    const char* const* header_texts, const char* const* header_names))       \
  X(CompileProgram, (NvrtcProgram program, int options, const char* const* texts))           \
  X(GetCUBINSize, (NvrtcProgram program, size_t * size_bytes))                               \
  X(GetCUBIN, (NvrtcProgram program, char* cubin))                                           \
  X(GetProgramLogSize, (NvrtcProgram program, size_t * size_bytes))                          \
  X(GetProgramLog, (NvrtcProgram program, char* log))                                        \
  X(DestroyProgram, (NvrtcProgram * program))

class Nvrtc {
 public:
  // The library that LAZY_NVRTC_PATH names, and no other; else one that the process has already,
  // the one PyTorch's packages bring, or the system's. Searched for until it has been found.
  static absl::StatusOr<const Nvrtc*> Find();
  static absl::StatusOr<void*> FindLibrary();  // the search alone
  // The one in this file, and no other.
  static absl::StatusOr<Nvrtc> Open(const std::string& file);

  const std::string& version() const { return version_; }  // "13.0"
  const std::string& file() const { return file_; }        // where it was found
  // What is the same for all texts and changes the code made from them.
  static std::string Options();
  // A cubin for an architecture such as "sm_90". kInvalidArgument: the text is at fault; the first
  // errors of the compiler's log are in the message. From any thread; texts compile side by side.
  absl::StatusOr<std::string> Compile(const std::string& text, const std::string& arch) const;

 private:
  absl::Status Load(void* library);
  absl::StatusOr<std::string> CompileProgramOf(NvrtcProgram program, const std::string& arch) const;
  std::string LogOf(NvrtcProgram program) const;

  std::string version_;
  std::string file_;
#define X(Name, parameters) NvrtcResult(*Name##_) parameters = nullptr;
  TORCH_LAZY_NVRTC_LIST(X)
#undef X
};

}  // namespace torch_lazy::backends::cuda
