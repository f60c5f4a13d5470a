// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/plans.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/registry.h"
#include "base/at_work.h"
#include "base/check.h"
#include "base/faults.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/pace.h"
#include "base/status.h"
#include "base/wait.h"
#include "codegen/compile.h"
#include "codegen/plan/kernel_note.h"
#include "codegen/why_apart.h"
#include "ir/fingerprint.h"
#include "ir/print.h"
#include "ir/unify.h"
#include "lazy/host/background.h"
#include "lazy/host/interrupt.h"
#include "lazy/host/ledger.h"
#include "lazy/ops/deterministic.h"

namespace torch_lazy::lazy {
namespace {

// In the background a graph is compiled when it comes a second time, since the first steps of a program are often like
// no other; who waits for kernels wants them at once.
int CutsBeforeCompiling(base::CompileMode mode) { return mode == base::CompileMode::kSync ? 1 : 2; }

struct PlanTable {
  std::mutex lock;
  using Key = std::pair<base::Fingerprint, bool>;  // of the skeleton; deterministic or not
  absl::flat_hash_map<Key, std::vector<std::shared_ptr<PlannedGraph>>> by_skeleton;
  size_t num_nodes = 0;

  std::vector<std::shared_ptr<PlannedGraph>> AllThat(bool (PlannedGraph::*are)()) const {
    std::vector<std::shared_ptr<PlannedGraph>> all;
    for (const auto& [key, alike] : by_skeleton)
      std::ranges::copy_if(alike, std::back_inserter(all), [are](const auto& planned) { return (*planned.*are)(); });
    return all;
  }
};

PlanTable& Plans() {
  static PlanTable* const plans = new PlanTable;
  return *plans;
}

// --- what the end of the program leaves ---

std::atomic<pid_t> asked_by{0};  // a fork is another process, and what it inherits is its parent's to plan

// The largest first: they gain most. No more than an exit has time to print.
void LeavePlans() {
  constexpr size_t kMostNodes = size_t{1} << 16;
  if (asked_by.exchange(0) != getpid()) return;
  std::vector<std::shared_ptr<PlannedGraph>> asked = AllAsked();
  const auto size = [](const std::shared_ptr<PlannedGraph>& planned) { return planned->graph().nodes.size(); };
  std::ranges::stable_sort(asked, std::greater<>(), size);
  std::vector<backends::LeftGraph> left;
  size_t nodes = 0;
  for (const std::shared_ptr<PlannedGraph>& planned : asked) {
    nodes += size(planned);
    if (nodes <= kMostNodes) left.push_back(planned->Left());
  }
  backends::Get().LeaveBehind(left);
}

void LeavePlansAtExit() {
  asked_by = getpid();
  static const bool called = (base::CallAtExit(&LeavePlans), true);
  static_cast<void>(called);
}

// The numbers of a general graph's symbols, by those that stand for them in a special one.
std::vector<int64_t> NumbersOf(const std::vector<int32_t>& same, const std::vector<int64_t>& numbers) {
  std::vector<int64_t> general;
  for (const int32_t symbol : same) general.push_back(symbol < 0 ? 0 : numbers[static_cast<size_t>(symbol)]);
  return general;
}

// An error of ours in a pass, or no memory for it, is a status, too: the trace runs op by op.
absl::Status TryCompile(const ir::Graph& graph, const codegen::CompileOptions& options, bool wait, codegen::Plan* plan,
                        double* planning_seconds, std::shared_ptr<backends::Module>* module) {
  const double start = SecondsNow();
  try {
    LAZY_CHECK(!base::MustFail(), "a fault that was asked for");
    LAZY_ASSIGN_OR_RETURN(*plan, codegen::Compile(graph, options));
    *planning_seconds = SecondsNow() - start;
    *module = backends::Get().Compile(plan->kernels, wait);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace

bool PlannedGraph::Want(const std::vector<int64_t>& numbers, int num_cuts) {
  const base::CompileMode mode = CompilationFor(deterministic_);
  if (mode == base::CompileMode::kOff) return false;
  const bool wait = mode == base::CompileMode::kSync;
  const base::Interruptible interruptible(&IsInterrupted);
  bool at_once = false;
  {
    std::unique_lock<std::mutex> lock(lock_);
    if (state_ != State::kNew) return IsReady(&lock, wait);
    cuts_ += num_cuts;
    if (cuts_ < CutsBeforeCompiling(mode) && !IsAtHand(numbers)) return false;
    at_once = wait || IsAtHand(numbers);
    seen_ = numbers;
    state_ = State::kAsked;
  }
  base::Count(base::Counter::kCompilesPending);
  if (at_once) {
    Compile(numbers, wait);
  } else {
    LeavePlansAtExit();
    InBackground([graph = shared_from_this(), numbers] { graph->Compile(numbers, /*wait=*/false); });
  }
  std::unique_lock<std::mutex> lock(lock_);
  return IsReady(&lock, wait);
}

// Kept beside the kernels: those of a plan, by name. They may not be compiled yet, and a program may end before they
// are. A process that finds all of them plans the graph at the first cut that wants it, and has the kernels at once:
// they serve the same steps from run to run. In the background they would come when there is time.
std::string PlannedGraph::NameOfNote(const std::vector<int64_t>& numbers) const {
  return absl::StrCat("plan ", ir::FingerprintOf(graph_).ToString(),
                      is_for_its_sizes_ ? absl::StrCat(" for ", absl::StrJoin(numbers, ",")) : "");
}

bool PlannedGraph::IsAtHand(const std::vector<int64_t>& numbers) {
  if (is_at_hand_) return *is_at_hand_;
  is_at_hand_ = false;
  note_ = backends::Get().Recall(NameOfNote(numbers));
  const std::optional<std::vector<std::string>> kernels = codegen::KernelsNamed(note_);
  is_at_hand_ = kernels && backends::Get().HasKernels(*kernels);
  return *is_at_hand_;
}

void PlannedGraph::Note() {
  const std::string note = codegen::KernelNote(plan_);
  if (note != note_) backends::Get().Keep(NameOfNote(seen_), note);
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
  const std::shared_ptr<PlannedGraph>& other =
      others_.emplace_back(std::make_shared<PlannedGraph>(graph_, deterministic_, trace_text_));
  other->is_for_its_sizes_ = true;
  return other;
}

bool PlannedGraph::IsPending() {
  std::unique_lock<std::mutex> lock(lock_);
  return state_ == State::kAsked || (state_ == State::kPlanned && !module_->ready());
}

bool PlannedGraph::IsPlanned() {
  std::unique_lock<std::mutex> lock(lock_);
  return state_ == State::kPlanned;
}

bool PlannedGraph::IsAsked() {
  const std::unique_lock<std::mutex> lock(lock_, std::try_to_lock);
  return lock.owns_lock() && state_ == State::kAsked;
}

backends::LeftGraph PlannedGraph::Left() { return {ir::Print(graph_), seen_, NameOfNote(seen_)}; }

bool PlannedGraph::IsReady(std::unique_lock<std::mutex>* lock, bool wait) {
  if (wait) Await(lock);
  if (state_ != State::kPlanned) return false;
  if (!module_->ready()) return false;
  if (module_->status().ok()) return true;
  LAZY_LOG(1, "kernels failed: ", module_->status().ToString());
  state_ = State::kFailed;
  FindFailures();
  return false;
}

// Not with the lock: a wait that looks for Ctrl-C takes Python's, and whoever has that may want ours.
void PlannedGraph::Await(std::unique_lock<std::mutex>* lock) {
  {
    const base::Hurry hurry;
    constexpr auto kTurn = std::chrono::milliseconds(50);
    while (!planned_.wait_for(*lock, kTurn, [this] { return state_ != State::kAsked; })) {
      lock->unlock();
      const bool stops = base::MustStopWaiting();
      lock->lock();
      if (stops) return;
    }
  }
  if (state_ != State::kPlanned) return;
  const std::shared_ptr<backends::Module> module = module_;
  lock->unlock();
  module->Wait();
  lock->lock();
}

void PlannedGraph::FindFailures() {
  std::vector<FailedKernel> failures;
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const absl::Status status = module_->StatusOf(static_cast<int>(k));
    if (status.ok()) continue;
    if (!absl::IsInvalidArgument(status)) return;  // no other plan would do
    failures.push_back({plan_.kernels[k].name, std::string(status.message()), plan_.origins[k]});
  }
  failures_ = std::move(failures);
}

std::vector<FailedKernel> PlannedGraph::Failures() {
  std::lock_guard<std::mutex> lock(lock_);
  return failures_;
}

double PlannedGraph::TakePlanningSeconds() {
  std::lock_guard<std::mutex> lock(lock_);
  return std::exchange(planning_seconds_, 0);
}

void PlannedGraph::NameOperators(const LoweredTrace& lowered, absl::Span<const TrieNode* const> calls) {
  std::lock_guard<std::mutex> lock(lock_);
  if (!operators_.empty()) return;
  for (const int32_t call : lowered.calls)
    operators_.push_back(call < 0 ? nullptr : calls[static_cast<size_t>(call)]->op);
}

std::vector<PlannedGraph::Apart> PlannedGraph::AllApart() {
  codegen::CompileOptions options;
  options.target = backends::Get().target();
  std::vector<const Op*> operators;
  {
    std::lock_guard<std::mutex> lock(lock_);
    if (state_ != State::kPlanned || operators_.empty()) return {};
    options.seen_extents = seen_;
    operators = operators_;
  }
  const absl::StatusOr<std::vector<codegen::Apart>> nodes = codegen::AllApart(graph_, options);
  std::vector<Apart> all;
  if (!nodes.ok()) return all;
  for (const codegen::Apart& pair : *nodes) {
    const Op* const made = operators[static_cast<size_t>(pair.made)];
    const Op* const needed_by = operators[static_cast<size_t>(pair.needed_by)];
    if (made != nullptr && needed_by != nullptr) all.push_back({made, needed_by, pair.rule, pair.words});
  }
  return all;
}

void PlannedGraph::Compile(const std::vector<int64_t>& numbers, bool wait) {
  codegen::CompileOptions options;
  options.target = backends::Get().target();
  options.seen_extents = numbers;
  options.verify = base::Number(base::Option::kVerify) != 0;
  options.dump_folder = base::MakeDumpFolder("trace");
  base::WriteDump(options.dump_folder, "00-trace.txt", trace_text_);
  if (!options.dump_folder.empty()) base::WriteDump(options.dump_folder, "05-lowered.lir", ir::Print(graph_));
  codegen::Plan plan;
  double planning_seconds = 0;
  std::shared_ptr<backends::Module> module;
  const absl::Status status = TryCompile(graph_, options, wait, &plan, &planning_seconds, &module);
  if (!status.ok())
    base::WarnOnce("plan", absl::StrCat("a trace could not be compiled, so it runs op by op: ", status.ToString()));
  {
    std::lock_guard<std::mutex> lock(lock_);
    state_ = status.ok() ? State::kPlanned : State::kFailed;
    plan_ = std::move(plan);
    planning_seconds_ = planning_seconds;
    dump_folder_ = std::move(options.dump_folder);
    module_ = std::move(module);
  }
  planned_.notify_all();
  if (status.ok() && !wait) Note();
  base::Count(base::Counter::kCompilesPending, -1);
}

std::shared_ptr<PlannedGraph> PlanOf(LoweredTrace* lowered, bool deterministic, bool* known) {
  ir::Graph graph = std::exchange(lowered->graph, {});
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    lowered->calls.push_back(std::exchange(graph.nodes[v].origin, static_cast<int32_t>(v)));
  }
  PlanTable& plans = Plans();
  const base::Fingerprint skeleton = ir::SkeletonOf(graph);
  std::lock_guard<std::mutex> lock(plans.lock);
  if (static_cast<int64_t>(plans.num_nodes) > base::Number(base::Option::kMaxKnownOps)) {
    InBackground([former = std::exchange(plans.by_skeleton, {})] {});
    plans.num_nodes = 0;
  }
  auto& alike = plans.by_skeleton[{skeleton, deterministic}];
  const auto serves = [&](const std::shared_ptr<PlannedGraph>& planned) {
    const std::optional<std::vector<int32_t>> same = ir::Unify(planned->graph(), graph);
    if (same) lowered->symbols = NumbersOf(*same, lowered->symbols);
    return same.has_value();
  };
  const auto planned = std::ranges::find_if(alike, serves);
  *known = planned != alike.end();
  if (*known) return *planned;
  std::optional<ir::Graph> general;
  if (!alike.empty()) general = ir::Generalize(alike.back()->graph(), graph);
  plans.num_nodes += graph.nodes.size();
  alike.push_back(std::make_shared<PlannedGraph>(general ? *std::move(general) : std::move(graph), deterministic,
                                                 std::move(lowered->trace_text)));
  if (general) LAZY_CHECK(serves(alike.back()), "a generalized graph is not general");
  return alike.back();
}

std::vector<std::shared_ptr<PlannedGraph>> AllPlanned() {
  const std::lock_guard<std::mutex> lock(Plans().lock);
  return Plans().AllThat(&PlannedGraph::IsPlanned);
}

std::vector<std::shared_ptr<PlannedGraph>> AllAsked() {
  const std::unique_lock<std::mutex> lock(Plans().lock, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  return Plans().AllThat(&PlannedGraph::IsAsked);
}

}  // namespace torch_lazy::lazy
