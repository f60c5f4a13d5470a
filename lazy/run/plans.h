// SPDX-License-Identifier: Apache-2.0
// Compiled graphs, shared by every entry that lowers to the same graph but for sizes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/backend.h"
#include "codegen/plan/plan.h"
#include "ir/graph.h"
#include "lazy/lower/lowered_trace.h"
#include "lazy/ops/op.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// One that does not compile, or cannot be loaded.
struct FailedKernel {
  std::string name;
  std::string error;
  std::vector<ir::Value> nodes;  // of the graph, that it was to compute
};

// One graph and, once it has been seen often enough to be worth a compiler, its plan and kernels.
class PlannedGraph : public std::enable_shared_from_this<PlannedGraph> {
 public:
  // `deterministic`: of traces that are to repeat (deterministic.h). Who wants it waits for it, and it is none of the
  // others'.
  // `trace_text`: of a trace that it was lowered from, for the dump.
  PlannedGraph(ir::Graph graph, bool deterministic, std::string trace_text)
      : graph_(std::move(graph)), deterministic_(deterministic), trace_text_(std::move(trace_text)) {}
  const ir::Graph& graph() const { return graph_; }

  // So many more cuts want this graph. The second has it planned and its kernels compiled in the background; with
  // option compile=sync, or if it is deterministic, the first does, and waits. Where the disk has the kernels that a
  // former process planned, the first has it planned, at once. Returns true if it is ready to run. `numbers`: of the
  // graph's symbols.
  bool Want(const std::vector<int64_t>& numbers, int num_cuts);
  // Are the kernels fast for such sizes? It is ready to run.
  bool IsMadeFor(const std::vector<int64_t>& numbers) const;
  // The same graph, which is planned for such sizes, or may turn out to be, where this one is not; else null. This one
  // is ready to run.
  std::shared_ptr<PlannedGraph> BetterFor(const std::vector<int64_t>& numbers);
  // Why the graph will never be ready: kernels that are at fault themselves. Empty where it is ready or may become so,
  // and where nothing compiles on this machine.
  std::vector<FailedKernel> Failures();
  // What it took to plan it, without its kernels' compilation; 0 for who asks again.
  double TakePlanningSeconds();
  // True while it is being planned or its kernels compiled.
  bool IsPending();
  bool IsPlanned();            // its kernels may still be compiling
  bool IsAsked();              // and not planned; false as well where another thread has its lock
  backends::LeftGraph Left();  // of one that is asked for
  const codegen::Plan& plan() const { return plan_; }
  const backends::Module& module() const { return *module_; }
  const std::string& dump_folder() const { return dump_folder_; }  // empty: none

  // For explain(): the operators of the calls that the graph was made for, of the first trace that says so.
  void NameOperators(const LoweredTrace& lowered, absl::Span<const TrieNode* const> calls);
  // A value that a kernel of its own makes, though another needs it: by the operators that the two were made for.
  struct Apart {
    const Op* made;
    const Op* needed_by;
    absl::string_view rule, words;  // as codegen/why_apart has them
  };
  // All of the plan, or nothing where there is no plan. Passes and partitioning are done again.
  std::vector<Apart> AllApart();

 private:
  enum class State { kNew, kAsked, kPlanned, kFailed };

  // Plans the graph and asks for its kernels, without the lock; then the state is kPlanned or kFailed.
  void Compile(const std::vector<int64_t>& numbers, bool wait);
  // Until it is planned and its kernels are ready, or the program is interrupted.
  void Await(std::unique_lock<std::mutex>* lock);
  bool IsReady(std::unique_lock<std::mutex>* lock, bool wait);
  // What the note of its plan is called on disk.
  std::string NameOfNote(const std::vector<int64_t>& numbers) const;
  // True if the disk has the kernels that a former process planned for this graph. Asked with the lock.
  bool IsAtHand(const std::vector<int64_t>& numbers);
  // Notes the kernels of its plan on disk.
  void Note();
  void FindFailures();

  const ir::Graph graph_;  // each node is its own origin
  const bool deterministic_;
  const std::string trace_text_;
  std::mutex lock_;  // over what follows, until it is planned
  std::condition_variable planned_;
  State state_ = State::kNew;
  int cuts_ = 0;
  bool is_for_its_sizes_ = false;   // alone: another is for others
  std::optional<bool> is_at_hand_;  // nothing: not asked yet
  std::string note_;                // on disk
  codegen::Plan plan_;
  std::shared_ptr<backends::Module> module_;
  std::string dump_folder_;
  double planning_seconds_ = 0;                        // that nobody was told of
  std::vector<std::shared_ptr<PlannedGraph>> others_;  // of the same graph, for other sizes
  std::vector<FailedKernel> failures_;
  std::vector<int64_t> seen_;         // numbers of its symbols that it is planned for, once asked
  std::vector<const Op*> operators_;  // per node; null: none
};

// The PlannedGraph that serves a trace, whose graph it takes: one of an equal graph, or of one with symbols of its own
// where the numbers happen to be equal, or a new one that serves the trace as well as the last graph of its skeleton.
// The trace's symbols become the numbers of its symbols. `*known` tells whether it was there: once those that are have
// more nodes than option max_known_ops says, all are forgotten. Their kernels stay. Deterministic ones and others are
// apart: the sizes that the former are planned for must not depend on which plan was there first.
std::shared_ptr<PlannedGraph> PlanOf(LoweredTrace* lowered, bool deterministic, bool* known);

// All that are known and planned, in no order.
std::vector<std::shared_ptr<PlannedGraph>> AllPlanned();
// All that are asked for and not planned, in no order. Waits for no thread, and leaves out what it would wait for.
std::vector<std::shared_ptr<PlannedGraph>> AllAsked();

}  // namespace torch_lazy::lazy
