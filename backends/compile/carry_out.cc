// SPDX-License-Identifier: Apache-2.0
#include "backends/compile/carry_out.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "backends/compile/child.h"
#include "backends/compiler_log.h"
#include "backends/cpu/compiler.h"
#include "backends/cuda/nvrtc.h"
#include "backends/disk/disk_cache.h"
#include "backends/disk/files.h"
#include "backends/disk/temporary_folder.h"
#include "base/status.h"

namespace torch_lazy::backends {
namespace {

constexpr absl::Duration kCompilerTimeLimit = absl::Minutes(5);
constexpr absl::Duration kCompilerTurn = absl::Milliseconds(100);

absl::Status Await(pid_t compiler, const CarryOutOptions& options) {
  const absl::Time deadline = absl::Now() + kCompilerTimeLimit;
  while (!EndsWithin(compiler, kCompilerTurn)) {
    if (absl::Now() <= deadline && !options.must_stop()) continue;
    AskChildToEnd(compiler, options.own_group).IgnoreError();
    return absl::DeadlineExceededError("the C++ compiler was ended, since it took too long");
  }
  return EndChild(compiler, options.own_group);
}

absl::StatusOr<std::string> CompileCpp(const Order& order, const CarryOutOptions& options) {
  LAZY_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Make());
  const std::string source = absl::StrCat(folder.path(), "/kernels.cc");
  const std::string library = absl::StrCat(folder.path(), "/kernels.so");
  LAZY_RETURN_IF_ERROR(WriteFile(source, SourceOf(order.language, order.kernels)));
  ChildOptions compiler;
  compiler.arguments = CompileCommand({order.command, order.cache_key}, source, library);
  compiler.output_file = absl::StrCat(folder.path(), "/output.txt");
  compiler.own_group = options.own_group;
  compiler.temporary_folder = folder.path();
  LAZY_ASSIGN_OR_RETURN(const pid_t child, StartChild(compiler));
  const absl::Status ended = Await(child, options);
  if (absl::IsDeadlineExceeded(ended)) return ended;
  if (!ended.ok()) {
    const std::string output =
        absl::StrReplaceAll(ReadFile(compiler.output_file), {{absl::StrCat(folder.path(), "/"), ""}});
    return absl::InvalidArgumentError(
        absl::StrCat("the C++ compiler failed: ", ended.message(), "\n", FirstErrors(output)));
  }
  std::string code = ReadFile(library);
  if (code.empty()) return absl::InternalError("the C++ compiler has left no library");
  return code;
}

absl::StatusOr<std::string> CompileCuda(const Order& order) {
  if (order.command.size() != 2) return absl::InternalError("NVRTC's order has no architecture");
  LAZY_ASSIGN_OR_RETURN(const cuda::Nvrtc nvrtc, cuda::Nvrtc::Open(order.command[0]));
  return nvrtc.Compile(SourceOf(order.language, order.kernels), order.command[1]);
}

}  // namespace

Compiled CarryOut(const Order& order, const CarryOutOptions& options) {
  const bool is_cpp = order.language == Order::Language::kCpp;
  Compiled compiled;
  compiled.code = is_cpp ? CompileCpp(order, options) : CompileCuda(order);
  if (!compiled.code.ok() || order.cache_root.empty() || order.kernels.empty()) return compiled;
  DiskCache cache(order.cache_root, is_cpp ? kLibraries : kCubins, order.cache_key);
  compiled.kept = cache.Store(order.kernels, *compiled.code);
  return compiled;
}

}  // namespace torch_lazy::backends
