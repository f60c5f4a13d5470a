// SPDX-License-Identifier: Apache-2.0
// What is known of a partition while it is made.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "codegen/layout/copies.h"
#include "codegen/partition/dependencies.h"
#include "codegen/partition/group.h"
#include "codegen/partition/lifetime.h"
#include "codegen/partition/look_ahead.h"
#include "codegen/partition/readers.h"
#include "codegen/partition/worth_storing.h"
#include "codegen/plan/compile_options.h"

namespace torch_lazy::codegen {

// A rule that kept a value out of a group, or that had groups compute it again.
struct Reason {
  ir::Value value;
  int group;
  absl::string_view rule;
  bool is_computed;  // again by the group
};

struct PartitionState {
  // `reasons`: where they are noted; null: nowhere.
  PartitionState(const ir::Graph& graph, const Concats& concats, const Factors& factors, const CompileOptions& options,
                 std::vector<Reason>* reasons);
  PartitionState(const PartitionState&) = delete;

  // Calls keep their order: they may draw random numbers or write to what nobody here sees.
  void AddCalls();

  int AddGroup();
  int GroupTask(int group) const { return group_tasks[group]; }

  // Gives the group what the node needs, if it can.
  bool Fit(ir::Value v, int group);

  // The node is computed by the group: its inputs are read there.
  void Compute(ir::Value v, int group);
  void ReadInput(const Readers::InGroup& reader, ir::Value v, int input);
  void RequireStored(ir::Value v, int task);

  // `task` makes the value: it comes before all its readers.
  void NoteReaders(ir::Value v, int task);

  // No other reader of the value has to run before the group.
  bool NothingBetween(ir::Value v, int group) const;

  void NoteRefusal(ir::Value v, int group, absl::string_view rule) {
    if (reasons != nullptr) reasons->push_back({v, group, rule, /*is_computed=*/false});
  }
  void NoteComputed(ir::Value v, int group, absl::string_view rule) {
    if (reasons != nullptr) reasons->push_back({v, group, rule, /*is_computed=*/true});
  }

  const ir::Graph& graph;
  const LookAhead look;
  const Lifetimes lifetimes;
  const WorthStoring worth;
  const Factors& factors;
  const CompileOptions& options;
  std::vector<Reason>* const reasons;
  Partition result;
  Dependencies dependencies;
  std::vector<Readers> readers;
  std::vector<absl::InlinedVector<ir::Value, 1>> share_sums;  // of each value, that are read
  std::vector<int> task;                                      // of each call and matmul
  absl::flat_hash_map<int, ir::Value> call_of_task;           // and back
  std::vector<int> group_tasks;                               // of each group

 private:
  int AddCallTask(size_t v);
};

}  // namespace torch_lazy::codegen
