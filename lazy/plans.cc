// SPDX-License-Identifier: Apache-2.0
#include "lazy/plans.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/pace.h"
#include "codegen/compile.h"
#include "ir/fingerprint.h"
#include "ir/unify.h"
#include "lazy/background.h"
#include "lazy/deterministic.h"

namespace torch_lazy::lazy {
namespace {

// In the background a graph is compiled when it comes a second time, since the first steps of a program are often like no
// other; who waits for kernels wants them at once.
int CutsBeforeCompiling(base::CompileMode mode) { return mode == base::CompileMode::kSync ? 1 : 2; }

// Kept beside the kernels once all of a plan's are there. The next process then plans the graph at the cut that wants it, and has
// the kernels at once: they serve the same steps from run to run. In the background they would come when there is time.
constexpr char kHasKernels[] = "compiled";
std::string NoteOf(const ir::Graph& graph) { return absl::StrCat("plan ", ir::FingerprintOf(graph).ToString()); }

struct PlanTable {
  std::mutex lock;
  using Key = std::pair<base::Fingerprint, bool>;  // of the skeleton; deterministic or not
  absl::flat_hash_map<Key, std::vector<std::shared_ptr<PlannedGraph>>> by_skeleton;
  size_t num_nodes = 0;
};

PlanTable& Plans() {
  static PlanTable* const plans = new PlanTable;
  return *plans;
}

}  // namespace

bool PlannedGraph::Want(const std::vector<int64_t>& numbers, int num_cuts) {
  const base::CompileMode mode = CompilationFor(deterministic_);
  if (mode == base::CompileMode::kOff) return false;
  const bool wait = mode == base::CompileMode::kSync;
  {
    std::unique_lock<std::mutex> lock(lock_);
    if (state_ != State::kNew) return IsReady(&lock, wait);
    cuts_ += num_cuts;
    if (cuts_ < CutsBeforeCompiling(mode)) return false;
    state_ = State::kAsked;
  }
  base::Count(base::Counter::kCompilesPending);
  is_noted_ = wait || backends::Get().Recall(NoteOf(graph_)) == kHasKernels;
  if (is_noted_) {
    Compile(numbers, wait);
  } else {
    InBackground([graph = shared_from_this(), numbers] { graph->Compile(numbers, /*wait=*/false); });
  }
  std::unique_lock<std::mutex> lock(lock_);
  return IsReady(&lock, wait);
}

bool PlannedGraph::IsMadeFor(const std::vector<int64_t>& numbers) const {
  return codegen::IsMadeFor(plan_, codegen::NumbersOf(plan_.padded_extents, numbers));
}

std::shared_ptr<PlannedGraph> PlannedGraph::BetterFor(const std::vector<int64_t>& numbers) {
  constexpr size_t kMostOthers = 4;
  if (IsMadeFor(numbers)) return nullptr;
  std::lock_guard<std::mutex> lock(lock_);
  for (const std::shared_ptr<PlannedGraph>& other : others_) {
    std::lock_guard<std::mutex> its(other->lock_);
    if (other->state_ == State::kPlanned ? other->IsMadeFor(numbers) : other->state_ != State::kFailed) return other;
  }
  if (others_.size() == kMostOthers) return nullptr;
  return others_.emplace_back(std::make_shared<PlannedGraph>(graph_, deterministic_));
}

bool PlannedGraph::IsPending() {
  std::unique_lock<std::mutex> lock(lock_);
  return state_ == State::kAsked || (state_ == State::kPlanned && !module_->ready());
}

bool PlannedGraph::IsReady(std::unique_lock<std::mutex>* lock, bool wait) {
  if (wait) {
    const base::Hurry hurry;
    planned_.wait(*lock, [this] { return state_ != State::kAsked; });
  }
  if (state_ != State::kPlanned) return false;
  if (wait) module_->Wait();
  if (!module_->ready()) return false;
  if (module_->status().ok()) {
    if (!std::exchange(is_noted_, true)) InBackground([note = NoteOf(graph_)] { backends::Get().Keep(note, kHasKernels); });
    return true;
  }
  LAZY_LOG(1, "kernels could not be compiled, so their traces run op by op: ", module_->status().ToString());
  state_ = State::kFailed;
  return false;
}

void PlannedGraph::Compile(const std::vector<int64_t>& numbers, bool wait) {
  codegen::CompileOptions options;
  options.target = backends::Get().target();
  options.typical_extents = numbers;
  options.verify = base::Number(base::Option::kVerify) != 0;
  options.dump_folder = base::MakeDumpFolder("trace");
  absl::StatusOr<codegen::Plan> plan = codegen::Compile(graph_, options);
  std::shared_ptr<backends::Module> module;
  if (plan.ok()) {
    module = backends::Get().Compile(plan->kernels, wait);
  } else {
    base::WarnOnce("plan", absl::StrCat("a trace could not be compiled, so it runs op by op: ", plan.status().ToString()));
  }
  {
    std::lock_guard<std::mutex> lock(lock_);
    state_ = plan.ok() ? State::kPlanned : State::kFailed;
    if (plan.ok()) plan_ = *std::move(plan);
    dump_folder_ = std::move(options.dump_folder);
    module_ = std::move(module);
  }
  planned_.notify_all();
  base::Count(base::Counter::kCompilesPending, -1);
}

std::shared_ptr<PlannedGraph> PlanOf(ir::Graph graph, bool deterministic, std::vector<int64_t>* symbols, bool* known) {
  PlanTable& plans = Plans();
  const base::Fingerprint skeleton = ir::SkeletonOf(graph);
  std::lock_guard<std::mutex> lock(plans.lock);
  if (static_cast<int64_t>(plans.num_nodes) > base::Number(base::Option::kMaxKnownOps)) {
    InBackground([former = std::exchange(plans.by_skeleton, {})] {});
    plans.num_nodes = 0;
  }
  auto& alike = plans.by_skeleton[{skeleton, deterministic}];
  for (const std::shared_ptr<PlannedGraph>& planned : alike) {
    const std::optional<std::vector<int32_t>> same = ir::Unify(planned->graph(), graph);
    if (!same) continue;
    *known = true;
    std::vector<int64_t> numbers;
    for (const int32_t symbol : *same) numbers.push_back(symbol < 0 ? 0 : (*symbols)[static_cast<size_t>(symbol)]);
    *symbols = std::move(numbers);
    return planned;
  }
  *known = false;
  plans.num_nodes += graph.nodes.size();
  alike.push_back(std::make_shared<PlannedGraph>(std::move(graph), deterministic));
  return alike.back();
}

}  // namespace torch_lazy::lazy
