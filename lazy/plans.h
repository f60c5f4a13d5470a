// SPDX-License-Identifier: Apache-2.0
// Compiled graphs, shared by every entry that lowers to the same graph.
#pragma once

#include <memory>
#include <mutex>

#include "backends/backend.h"
#include "codegen/plan.h"
#include "ir/graph.h"

namespace torch_lazy::lazy {

// One graph and, once it has been seen often enough to be worth a compiler, its plan and kernels.
class PlannedGraph {
 public:
  explicit PlannedGraph(ir::Graph graph) : graph_(std::move(graph)) {}
  const ir::Graph& graph() const { return graph_; }

  // One more cut wants this graph. Asks for the kernels at the second (with option compile=sync at the first, and waits).
  // Returns true if the graph is ready to run. `numbers`: of the graph's symbols.
  bool Want(const std::vector<int64_t>& numbers);
  const codegen::Plan& plan() const { return plan_; }
  const backends::Module& module() const { return *module_; }

 private:
  void Compile(const std::vector<int64_t>& numbers, bool wait);

  std::mutex lock_;
  const ir::Graph graph_;
  int cuts_ = 0;
  bool asked_ = false;
  bool failed_ = false;
  codegen::Plan plan_;
  std::shared_ptr<backends::Module> module_;
};

// The one PlannedGraph that equals `graph`; never freed. `*known` tells whether it was there.
PlannedGraph* PlanOf(ir::Graph graph, bool* known);

}  // namespace torch_lazy::lazy
