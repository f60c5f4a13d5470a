// SPDX-License-Identifier: Apache-2.0
#include "backends/compile/left_work.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/compile/job.h"
#include "backends/compile/memory_file.h"
#include "backends/disk/disk_cache.h"
#include "backends/disk/places.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/status.h"
#include "codegen/compile.h"
#include "codegen/plan/kernel_note.h"
#include "ir/parse.h"

namespace torch_lazy::backends {
namespace {

absl::Status TryToLeave(Order order) {
  const std::string process = CompileProcess();
  if (process.empty()) return absl::NotFoundError("torch_lazy_compile");
  ChildOptions options;
  if (order.language == Order::Language::kCpp) {
    LAZY_ASSIGN_OR_RETURN(options.temporary_folder, TemporaryPlace());
  }
  order.is_left = true;
  order.process = getpid();
  order.disabled = base::Text(base::Option::kDisable);
  LAZY_ASSIGN_OR_RETURN(MemoryFile order_file, MemoryFile::Make());
  LAZY_ASSIGN_OR_RETURN(const MemoryFile result_file, MemoryFile::Make());
  LAZY_RETURN_IF_ERROR(order_file.Write(TextOf(order)));
  order_file.Rewind();
  options.arguments = {process};
  options.files = {order_file.file(), result_file.file()};
  options.priority = Priority::kLow;
  return StartChild(options).status();
}

class LeftWork {
 public:
  LeftWork(const Order& order, const CarryOutOptions& options)
      : order_(order),
        options_(options),
        is_cpp_(order.language == Order::Language::kCpp),
        cache_(order.cache_root, is_cpp_ ? kLibraries : kCubins, order.cache_key) {}

  void Do() {
    Compile(order_.kernels);
    for (const LeftGraph& graph : order_.graphs) {
      if (options_.must_stop()) return;
      try {
        PlanAndCompile(graph);
      } catch (const std::exception& error) {  // ours, in a pass: the next graph may do
        LAZY_LOG(1, "not planned: ", error.what());
      }
    }
  }

 private:
  void Compile(absl::Span<const codegen::Kernel> kernels) {
    std::vector<codegen::Kernel> missing;
    std::ranges::copy_if(kernels, std::back_inserter(missing), [&](const codegen::Kernel& kernel) {
      return std::ranges::find(order_.others, kernel.name) == order_.others.end() && !cache_.Names(kernel.name);
    });
    for (size_t begin = 0; begin < missing.size() && !options_.must_stop(); begin += kMostOfBatch)
      CompileBatch(absl::MakeConstSpan(missing).subspan(begin, kMostOfBatch));
  }

  void CompileBatch(absl::Span<const codegen::Kernel> kernels) {
    const FileLock lock = cache_.Lock(kernels);
    if (!lock.held()) return;
    Order batch;
    batch.language = order_.language;
    batch.command = order_.command;
    batch.cache_root = order_.cache_root;
    batch.cache_key = order_.cache_key;
    batch.kernels.assign(kernels.begin(), kernels.end());
    CarryOut(batch, options_);
  }

  void PlanAndCompile(const LeftGraph& left) {
    const absl::StatusOr<ir::Graph> graph = ir::Parse(left.text);
    if (!graph.ok()) return;
    codegen::CompileOptions options;
    options.target = is_cpp_ ? codegen::Target::kCpu : codegen::Target::kCuda;
    options.seen_extents = left.numbers;
    const absl::StatusOr<codegen::Plan> plan = codegen::Compile(*graph, options);
    if (!plan.ok()) return;
    cache_.Keep(left.note, codegen::KernelNote(*plan));
    Compile(plan->kernels);
  }

  const Order& order_;
  const CarryOutOptions& options_;
  const bool is_cpp_;
  DiskCache cache_;
};

}  // namespace

void LeaveBehind(Order order, absl::Span<const LeftGraph> graphs) {
  for (const codegen::Kernel& kernel : order.kernels) std::erase(order.others, kernel.name);
  order.graphs.assign(graphs.begin(), graphs.end());
  if (order.kernels.empty() && order.graphs.empty()) return;
  const absl::Status status = TryToLeave(std::move(order));
  if (!status.ok()) LAZY_LOG(1, "not left behind: ", status.ToString());
}

void CarryOutLeft(const Order& order, const CarryOutOptions& options) {
  if (order.cache_root.empty() || !base::SetOption("disable", order.disabled).ok()) return;
  LeftWork(order, options).Do();
}

}  // namespace torch_lazy::backends
