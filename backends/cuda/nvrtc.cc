// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "backends/compiler_log.h"
#include "backends/cuda/library.h"
#include "base/flags.h"
#include "base/status.h"

namespace torch_lazy::backends::cuda {
namespace {

// As the CPU's: sums of products are not contracted, so that results are ATen's.
constexpr const char* kOptions[] = {"--std=c++17", "--fmad=false"};
// Changes nothing in the code: what generated text leaves unused is nobody's concern.
constexpr const char* kNoWarnings = "--disable-warnings";
constexpr NvrtcResult kErrorCompilation = 6;  // NVRTC_ERROR_COMPILATION
constexpr NvrtcResult kErrorInternal = 11;    // NVRTC_ERROR_INTERNAL_ERROR
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Where the pip packages that PyTorch needs lie, beside PyTorch itself.
std::vector<std::string> PackageFolders() {
  std::string torch = FolderOfOpenLibrary("libtorch_cpu.so");
  if (torch.empty()) torch = FolderOfOpenLibrary("libc10.so");
  if (torch.empty()) return {};
  const std::string packages = absl::StrCat(torch, "/../../nvidia/");
  return {absl::StrCat(packages, "cu13/lib"), absl::StrCat(packages, "cuda_nvrtc/lib")};
}

}  // namespace

absl::StatusOr<void*> Nvrtc::FindLibrary() {
  static constexpr char kWhat[] = "NVRTC, which compiles kernels for CUDA,";
  const std::string chosen = base::Environment("LAZY_NVRTC_PATH");
  if (!chosen.empty()) return OpenLibrary({chosen}, absl::StrCat(kWhat, " as LAZY_NVRTC_PATH says"));
  for (const char* name : kNames) {
    if (void* const library = FindOpenLibrary(name)) return library;
  }
  std::vector<std::string> candidates;
  for (const std::string& folder : PackageFolders()) {
    for (const char* name : kNames) candidates.push_back(absl::StrCat(folder, "/", name));
  }
  candidates.insert(candidates.end(), {kNames[0], kNames[1], "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"});
  return OpenLibrary(candidates, kWhat);
}

absl::Status Nvrtc::Load(void* library) {
#define X(Name, parameters) LAZY_RETURN_IF_ERROR(FindSymbol(library, "nvrtc" #Name, &Name##_));
  TORCH_LAZY_NVRTC_LIST(X)
#undef X
  int major = 0, minor = 0;
  if (const NvrtcResult result = Version_(&major, &minor); result != 0)
    return absl::InternalError(absl::StrCat("nvrtcVersion: error ", result));
  version_ = absl::StrCat(major, ".", minor);
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(Version_), &info) == 0) return absl::OkStatus();
  // Absolute: another process opens it, perhaps from another folder.
  char* const absolute = realpath(info.dli_fname, nullptr);
  file_ = absolute != nullptr ? absolute : info.dli_fname;
  std::free(absolute);
  return absl::OkStatus();
}

absl::StatusOr<Nvrtc> Nvrtc::Open(const std::string& file) {
  LAZY_ASSIGN_OR_RETURN(void* const library, OpenLibrary({file}, "NVRTC"));
  Nvrtc nvrtc;
  LAZY_RETURN_IF_ERROR(nvrtc.Load(library));
  return nvrtc;
}

absl::StatusOr<const Nvrtc*> Nvrtc::Find() {
  static absl::Mutex& mutex = *new absl::Mutex;
  static const Nvrtc* found = nullptr;
  absl::MutexLock lock(&mutex);
  if (found != nullptr) return found;
  LAZY_ASSIGN_OR_RETURN(void* const library, FindLibrary());
  Nvrtc nvrtc;
  LAZY_RETURN_IF_ERROR(nvrtc.Load(library));
  found = new Nvrtc(nvrtc);
  return found;
}

std::string Nvrtc::Options() { return absl::StrJoin(kOptions, " "); }

absl::StatusOr<std::string> Nvrtc::Compile(const std::string& text, const std::string& arch) const {
  NvrtcProgram program = nullptr;
  const NvrtcResult result = CreateProgram_(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr);
  absl::StatusOr<std::string> cubin = result == 0
                                          ? CompileProgramOf(program, arch)
                                          : absl::InternalError(absl::StrCat("nvrtcCreateProgram: error ", result));
  if (program != nullptr) DestroyProgram_(&program);
  return cubin;
}

absl::StatusOr<std::string> Nvrtc::CompileProgramOf(NvrtcProgram program, const std::string& arch) const {
  const std::string architecture = absl::StrCat("--gpu-architecture=", arch);
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  options.push_back(kNoWarnings);
  options.push_back(architecture.c_str());
  const NvrtcResult compiled = CompileProgram_(program, static_cast<int>(options.size()), options.data());
  if (compiled != 0) {
    const bool is_texts_fault = compiled == kErrorCompilation || compiled == kErrorInternal;
    return absl::Status(is_texts_fault ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal,
                        absl::StrCat("NVRTC ", version_, " failed for ", arch, " (error ", compiled, ")\n",
                                     FirstErrors(LogOf(program))));
  }
  size_t size_bytes = 0;
  NvrtcResult result = GetCUBINSize_(program, &size_bytes);
  std::string cubin(size_bytes, '\0');
  if (result == 0) result = GetCUBIN_(program, cubin.data());
  if (result != 0 || cubin.empty()) return absl::InternalError(absl::StrCat("nvrtcGetCUBIN: error ", result));
  return cubin;
}

std::string Nvrtc::LogOf(NvrtcProgram program) const {
  size_t size_bytes = 0;
  if (GetProgramLogSize_(program, &size_bytes) != 0 || size_bytes == 0) return "";
  std::string log(size_bytes, '\0');
  if (GetProgramLog_(program, log.data()) != 0) return "";
  log.resize(size_bytes - 1);
  return log;
}

}  // namespace torch_lazy::backends::cuda
