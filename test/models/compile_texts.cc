// SPDX-License-Identifier: Apache-2.0
// Compiles the texts of CUDA kernels, without a GPU, and says which fail.
//
//   ls *.cu | compile_texts sm_90    with NVRTC: "FILE: what it says" for each file that fails
//   compile_texts prelude            the text before such a one that makes it C++ for the host's compiler
//
// Ends with 1 if a text has failed, with 2 if none could be compiled.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/nvrtc.h"
#include "backends/cuda_emulator/block.h"
#include "backends/cuda_emulator/wrap.h"

namespace torch_lazy::backends {
namespace {

constexpr unsigned kMostThreads = 4;  // more wait for NVRTC's locks
constexpr size_t kTogether = 8;       // texts of a program, as the CUDA backend compiles them

std::vector<std::string> Lines(std::istream& stream) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string TextOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

int CompileAll(const std::vector<std::string>& files, const std::string& arch) {
  dlopen(LAZY_TORCH_DIR "/lib/libc10.so", RTLD_LAZY | RTLD_LOCAL);  // NVRTC is looked for beside it
  const absl::StatusOr<const cuda::Nvrtc*> nvrtc = cuda::Nvrtc::Find();
  if (!nvrtc.ok()) {
    std::cerr << nvrtc.status() << "\n";
    return 2;
  }
  std::atomic<size_t> next{0};
  std::atomic<int> failures{0};
  std::mutex output;
  const auto compile_alone = [&](const std::string& file) {
    const absl::Status status = (*nvrtc)->Compile(TextOf(file), arch).status();
    if (status.ok()) return;
    ++failures;
    const std::lock_guard<std::mutex> lock(output);
    std::cout << file << ": " << status.message() << "\n";
  };
  // Where one of them fails, it is each by itself that tells which.
  const auto compile = [&] {
    for (size_t k = next.fetch_add(kTogether); k < files.size(); k = next.fetch_add(kTogether)) {
      const size_t end = std::min(files.size(), k + kTogether);
      std::string program;
      for (size_t file = k; file < end; ++file)
        program += "namespace lazy_" + std::to_string(file) + " {\n" + TextOf(files[file]) + "\n}\n";
      if ((*nvrtc)->Compile(program, arch).ok()) continue;
      for (size_t file = k; file < end; ++file) compile_alone(files[file]);
    }
  };
  std::vector<std::thread> threads;
  const unsigned count = std::min(std::max(std::thread::hardware_concurrency(), 1u), kMostThreads);
  for (unsigned k = 0; k < count; ++k) threads.emplace_back(compile);
  for (std::thread& thread : threads) thread.join();
  return failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace torch_lazy::backends

int main(int count, char** arguments) {
  using namespace torch_lazy::backends;
  const std::string what = count == 2 ? arguments[1] : "";
  if (what == "prelude") {
    std::cout << "#define LAZY_CUDA_EMULATOR\n"
              << cuda_emulator::kBlockText << kPrelude << "#define __shared__ static\n";
    return 0;
  }
  if (what.rfind("sm_", 0) == 0) return CompileAll(Lines(std::cin), what);
  std::cerr << "usage: compile_texts sm_80|sm_90|sm_100|... < names of files, or compile_texts prelude\n";
  return 2;
}
