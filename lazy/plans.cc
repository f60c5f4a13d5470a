// SPDX-License-Identifier: Apache-2.0
#include "lazy/plans.h"

#include "absl/container/flat_hash_map.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "codegen/compile.h"
#include "ir/fingerprint.h"
#include "ir/print.h"

namespace torch_lazy::lazy {
namespace {

// In the background a graph is compiled when it comes a second time, since the first steps of a program are often like no
// other; who waits for kernels wants them at once.
int CutsBeforeCompiling(base::CompileMode mode) { return mode == base::CompileMode::kSync ? 1 : 2; }

struct PlanTable {
  std::mutex lock;
  absl::flat_hash_map<base::Fingerprint, std::vector<std::unique_ptr<PlannedGraph>>> by_fingerprint;
};

PlanTable& Plans() {
  static PlanTable* const plans = new PlanTable;
  return *plans;
}

}  // namespace

bool PlannedGraph::Want(const std::vector<int64_t>& numbers) {
  const base::CompileMode mode = base::Compilation();
  if (mode == base::CompileMode::kOff) return false;
  std::lock_guard<std::mutex> lock(lock_);
  if (failed_ || (!asked_ && ++cuts_ < CutsBeforeCompiling(mode))) return false;
  if (!asked_) Compile(numbers, mode == base::CompileMode::kSync);
  if (failed_) return false;
  if (mode == base::CompileMode::kSync) module_->Wait();
  if (!module_->ready()) return false;
  if (!module_->status().ok()) {
    base::WarnOnce("kernels", absl::StrCat("kernels could not be compiled, so their traces run op by op: ",
                                           module_->status().ToString()));
    failed_ = true;
  }
  return !failed_;
}

void PlannedGraph::Compile(const std::vector<int64_t>& numbers, bool wait) {
  asked_ = true;
  codegen::CompileOptions options;
  options.typical_extents = numbers;
  options.verify = base::Number(base::Option::kVerify) != 0;
  options.dump_folder = base::MakeDumpFolder("trace");
  absl::StatusOr<codegen::Plan> plan = codegen::Compile(graph_, options);
  if (!plan.ok()) {
    base::WarnOnce("plan", absl::StrCat("a trace could not be compiled, so it runs op by op: ", plan.status().ToString()));
    failed_ = true;
    return;
  }
  plan_ = *std::move(plan);
  module_ = backends::Get().Compile(plan_.kernels, wait);
}

PlannedGraph* PlanOf(ir::Graph graph, bool* known) {
  PlanTable& plans = Plans();
  const base::Fingerprint fingerprint = ir::FingerprintOf(graph);
  std::lock_guard<std::mutex> lock(plans.lock);
  auto& same_name = plans.by_fingerprint[fingerprint];
  for (const std::unique_ptr<PlannedGraph>& planned : same_name) {
    if (planned->graph() == graph) {
      *known = true;
      return planned.get();
    }
  }
  *known = false;
  same_name.push_back(std::make_unique<PlannedGraph>(std::move(graph)));
  return same_name.back().get();
}

}  // namespace torch_lazy::lazy
