// SPDX-License-Identifier: Apache-2.0
// All options, in one table; nobody else reads the environment.
//
// An option `name` has the value of the variable LAZY_NAME when it is first asked for, else its
// default, until SetOption changes it. Reading a number, a switch or a choice is one relaxed load.
// A variable LAZY_... that is not known is warned of, once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace torch_lazy::base {

// X(Enumerator, name, Kind, default, choices, doc)
#define TORCH_LAZY_OPTION_LIST(X)                                                                                     \
  X(Backend, "backend", kChoice, "auto", "auto|cpu|cuda|null|null_cuda|stand_in",                                     \
    "where the device runs; auto is cuda where CUDA works; null computes nothing, to measure the "                    \
    "host; null_cuda neither, but plans the kernels that CUDA would get, to read them; stand_in "                     \
    "runs the CUDA kernels on the CPU, to test them")                                                                 \
  X(Log, "log", kNumber, "0", "", "0 warnings, 1 syncs and ops not compiled, 2 stages and times, 3 sources")          \
  X(Dump, "dump", kText, "", "", "folder that receives passes, kernels and a page about each step; empty: none")      \
  X(CacheDir, "cache_dir", kPath, "", "", "folder of compiled kernels; empty: torch_lazy in the user's cache folder") \
  X(Disable, "disable", kWords, "",                                                                                   \
    "cse|permute_hoisting|view_composition|expand_hoisting|folding|algebra|dce|"                                      \
    "halves|merge_matmuls|vector_products|relu_epilogues|pad_matmuls|prepare_reductions|fold_convolutions|"           \
    "relu_convolutions|autotune|sized|carry|freeze|graphs|early|at_once|chunks",                                      \
    "passes, and other things, not to do; separated by commas")                                                       \
  X(Verify, "verify", kSwitch, "0", "", "check each graph after each pass")                                           \
  X(Compare, "compare", kSwitch, "0", "", "run ATen beside each compiled trace and compare")                          \
  X(Overlap, "overlap", kSwitch, "1", "", "run short traces beside the program, which records the next")              \
  X(Compile, "compile", kChoice, "async", "async|sync|off", "in the background, waited for, or never")                \
  X(Devices, "devices", kNumber, "1", "",                                                                             \
    "how many devices there are where all are the CPU, for tests; else as many as GPUs")                              \
  X(Compiler, "compiler", kText, "", "", "the C++ compiler's program; empty: $CXX, g++ or c++")                       \
  X(MaxTraceOps, "max_trace_ops", kNumber, "16384", "", "a trace this long is cut")                                   \
  X(MaxTraceBytes, "max_trace_bytes", kNumber, "0", "",                                                               \
    "a trace that holds so many new bytes is cut; 0: 4 GiB, on a GPU half of its memory")                             \
  X(MaxKnownOps, "max_known_ops", kNumber, "524288", "",                                                              \
    "known traces, once they hold so many calls, and learned shapes, so many, are forgotten")

// Variables LAZY_... that are no options: X(name, doc).
#define TORCH_LAZY_VARIABLE_LIST(X)                                                                  \
  X("AUTOLOAD", "1: `import torch` loads the installed package")                                     \
  X("NVRTC_PATH", "the library of NVRTC; else the process's, PyTorch's packages' or the system's")   \
  X("TORCH_DIR", "builds: the folder of LibTorch")                                                   \
  X("BUILD_DIR", "tests: the folder of the build")                                                   \
  X("UPDATE_GOLDENS", "tests: rewrite goldens, and the blocks and pages that a program has written") \
  X("UPDATE_WORKLOADS", "tests: rewrite `test/runtime/workloads.json`")                              \
  X("TEST_DEVICE", "tests: the device that programs run on")                                         \
  X("TEST_EAGER", "tests: the device that results are compared with")                                \
  X("BENCH_EAGER", "benchmarks: the device that times are compared with")

enum class Option : uint8_t {
#define X(name, text, kind, default_text, choices, doc) k##name,
  TORCH_LAZY_OPTION_LIST(X)
#undef X
};

// In the order of the choices above.
enum class BackendChoice : uint8_t { kAuto, kCpu, kCuda, kNull, kNullCuda, kCudaEmulator };
enum class CompileMode : uint8_t { kAsync, kSync, kOff };

enum class OptionKind : uint8_t {
  kSwitch,
  kNumber,
  kChoice,
  kText,
  kPath,   // a text that is empty or begins with "/"
  kWords,  // any of the choices
};
struct OptionInfo {
  absl::string_view name;
  OptionKind kind;
  absl::string_view default_text;
  absl::string_view choices;
  absl::string_view doc;
};
const std::vector<OptionInfo>& Options();  // in the order of the table, for help texts and documentation

struct VariableInfo {
  absl::string_view name;  // without LAZY_
  absl::string_view doc;
};
const std::vector<VariableInfo>& Variables();

// Number: the value. Switch: 0 or 1. Choice: which one. Text: whether it is not empty.
inline int64_t Number(Option option);
std::string Text(Option option);          // of any kind
std::string FixedText(Option option);     // the same; from now on SetOption refuses another value
bool IsDisabled(absl::string_view name);  // it stands in option `disable`

inline BackendChoice Backend() { return static_cast<BackendChoice>(Number(Option::kBackend)); }
inline CompileMode Compilation() { return static_cast<CompileMode>(Number(Option::kCompile)); }

// Fails, and changes nothing, for an unknown name or a value that the option cannot have.
absl::Status SetOption(absl::string_view name, absl::string_view value);

// A variable of the environment that is not ours (HOME, CXX); empty if not set. In a set-user-ID
// program, whose user must not choose what it runs, no variable is, and none of our options either.
std::string Environment(const char* variable);

namespace internal {
inline std::atomic<int64_t>& OptionCell(Option option) {
  static constinit std::array<std::atomic<int64_t>, 32> cells{};  // 0: not read yet; else twice the number, plus one
  return cells[static_cast<size_t>(option)];
}
int64_t ReadOptionsAndGet(Option option);
// A bit for each whose value is fixed.
inline std::atomic<uint32_t>& FixedOptions() {
  static constinit std::atomic<uint32_t> options{0};
  return options;
}
}  // namespace internal

inline int64_t Number(Option option) {
  const int64_t code = internal::OptionCell(option).load(std::memory_order_relaxed);
  return code != 0 ? code >> 1 : internal::ReadOptionsAndGet(option);
}

}  // namespace torch_lazy::base
