// SPDX-License-Identifier: Apache-2.0
// Whether a value that several groups of a partition need is better stored, or computed by each.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/partition/group.h"
#include "codegen/partition/lifetime.h"
#include "codegen/partition/look_ahead.h"
#include "codegen/partition/readers.h"
#include "codegen/plan/target.h"

namespace torch_lazy::codegen {

// What is known of the partition so far: these grow meanwhile.
struct WorthStoring {
  const ir::Graph& graph;
  const LookAhead& look;
  const Lifetimes& lifetimes;
  const Target target;
  const std::vector<Readers>& readers;  // of each value
  const std::vector<Group>& groups;
  const absl::flat_hash_map<int, ir::Value>& call_of_task;

  // Gradients that are summed up over many calls, say: computed in the reader's group, which runs
  // later, the sum would keep all that it is made from until then.
  bool HoldsMemory(ir::Value v, int group) const;

  // Stored, the value would be held over calls until its last readers run, and there all that it is
  // made of is read anyway: an activation's inner values, which its gradient needs too.
  bool IsHeldAnyway(ir::Value v, const std::vector<int>& by) const;

  // On a GPU arithmetic is free beside memory: stored, the value would be written once and read by
  // all groups but one; computed by each, what it is made of is read by each, and held until then.
  bool MovesMoreIfStored(ir::Value v, const std::vector<int>& by) const;

  // On a GPU, a number of each long row that each group can fold again from what it reads anyway: a group that loads it
  // waits for memory before each row, and is not like the one that stores it, with which it would share a launch.
  bool IsFoldedAgain(ir::Value v, const std::vector<int>& by) const;

  // Does the group, which reads the value, read all that cheap pointwise ops make it of, too?
  bool MakesFromWhatItReads(ir::Value v, int group) const;

  // The group runs when the program has come to its last root, or before a call that reads one of them.
  int CallsBefore(int group) const;

 private:
  // True if the group reads, whether it computes `v` or not, all that pointwise ops make `v` of.
  // Parameters, which are in memory anyway, count as read where only memory is asked for.
  enum class Price : uint8_t { kNoMemory, kNothing };
  bool ReadsInputsOf(ir::Value v, int group, Price price) const;
  bool FoldsFromWhatItReads(ir::Value v, int group) const;
  bool IsLittle(ir::Value param, ir::Value v) const;
  // The group runs when the program has come to this value.
  ir::Value LastRoot(int group) const;
};

}  // namespace torch_lazy::codegen
