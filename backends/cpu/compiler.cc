// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compiler.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/flags.h"

namespace torch_lazy::backends {
namespace {

constexpr char kVersion[] = "torch_lazy cpu 1";  // raise it when the meaning of a kernel's arguments changes

// Exact IEEE arithmetic: nothing here reorders, contracts, or assumes that NaN, infinities or -0.0
// do not occur. -fno-trapping-math and -fno-math-errno only say that nobody looks at the exception
// flags and at errno; they let selects and square roots be vectorised. Signed overflow wraps, as in
// ATen.
const std::vector<std::string>& Flags() {
  static const auto& flags = *new std::vector<std::string> {
#if defined(__x86_64__)
    "-mprefer-vector-width=512",  // where there is AVX-512; g++ would use half of it
#endif
        "-O3", "-march=native", "-std=c++17", "-fPIC", "-shared", "-pipe", "-w", "-ffp-contract=off", "-fno-math-errno",
        "-fno-trapping-math", "-fno-exceptions", "-fno-rtti", "-fwrapv", "-fno-strict-aliasing"
  };
  return flags;
}

bool IsProgram(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// The file of a program: of an absolute path, or the first of its name in the folders of PATH as it
// was at first. What depends on the current folder is none. Empty if there is none.
std::string FindProgram(const std::string& program) {
  if (absl::StrContains(program, '/')) return program[0] == '/' && IsProgram(program) ? program : "";
  static const std::string& folders = *new std::string(base::Environment("PATH"));
  for (absl::string_view folder : absl::StrSplit(folders, ':', absl::SkipEmpty())) {
    const std::string path = absl::StrCat(folder, "/", program);
    if (path[0] == '/' && IsProgram(path)) return path;
  }
  return "";
}

// The program's file stands for its version: asking for that would cost a process at each start.
std::string IdentityOf(const std::string& path) {
  char real[PATH_MAX];
  struct stat info = {};
  if (realpath(path.c_str(), real) == nullptr || stat(real, &info) != 0) return path;
  return absl::StrCat(real, " ", info.st_size, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

// What -march=native depends on.
std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    for (const char* name : {"vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features"}) {
      if (absl::StartsWith(line, name)) lines.push_back(line);
    }
  }
  return absl::StrJoin(lines, "; ");
}

std::vector<std::string> Words(const std::string& text) { return absl::StrSplit(text, ' ', absl::SkipEmpty()); }

}  // namespace

absl::StatusOr<Compiler> FindCompiler() {
  std::vector<std::string> wanted = Words(base::FixedText(base::Option::kCompiler));
  static const std::string& cxx = *new std::string(base::Environment("CXX"));
  if (wanted.empty()) wanted = Words(cxx);
  const std::vector<std::vector<std::string>> candidates = wanted.empty()
                                                               ? std::vector<std::vector<std::string>>{{"g++"}, {"c++"}}
                                                               : std::vector<std::vector<std::string>>{wanted};
  for (const std::vector<std::string>& candidate : candidates) {
    const std::string path = FindProgram(candidate[0]);
    if (path.empty()) continue;
    Compiler compiler;
    compiler.command = candidate;
    compiler.command[0] = path;
    compiler.command.insert(compiler.command.end(), Flags().begin(), Flags().end());
    static const std::string& processor = *new std::string(Processor());
    compiler.key =
        absl::StrCat(kVersion, " | ", IdentityOf(path), " | ", absl::StrJoin(compiler.command, " "), " | ", processor);
    return compiler;
  }
  return absl::NotFoundError(
      absl::StrCat("no C++ compiler: tried ",
                   wanted.empty() ? "g++, c++; `pip install torch-lazy[compiler]` brings one" : wanted[0]));
}

std::vector<std::string> CompileCommand(const Compiler& compiler, const std::string& source,
                                        const std::string& library) {
  std::vector<std::string> command = compiler.command;
  command.insert(command.end(), {"-o", library, source, "-nostdlib", "-lm"});
  return command;
}

}  // namespace torch_lazy::backends
