// SPDX-License-Identifier: Apache-2.0
// Which nodes are computed together: the result of partitioning.
//
// A group becomes one kernel. It iterates over loop variables; the inner ones are folded by its
// reductions, the outer ones are its range. Each of its roots is stored; everything else it
// computes lives in registers.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/layout/concats.h"
#include "codegen/layout/factors.h"
#include "codegen/layout/index_map.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

struct Variable {
  enum class Kind : uint8_t {
    kOuter,
    kInner,
    kData,  // not a loop: the element of `index` at `index_map`, as used by a take
  };
  Kind kind;
  Monomial extent;
  ir::Value index = ir::kNoValue;
  int index_map = -1;
};

struct Group {
  // A reduction's operand has its reduced dims innermost (rows), or its kept dims (columns). Shares
  // of rows or columns: each inner loop is cut in pieces, which are summed up apart.
  enum class Shape : uint8_t { kMap, kRows, kColumns, kRowShares, kColumnShares };
  bool makes_shares() const { return shape == Shape::kRowShares || shape == Shape::kColumnShares; }
  struct Root {
    ir::Value value;
    int map;
  };

  Shape shape = Shape::kMap;
  std::vector<Variable> variables;
  std::vector<IndexMap> maps;  // no two alike
  std::vector<Root> roots;
  absl::flat_hash_set<ir::Value> computed;  // views and leaves, computed wherever they are met, are not listed

  int Intern(const IndexMap& map);
  int DataVariable(ir::Value index, int map, const Monomial& extent);
  std::vector<Monomial> VariableExtents() const;
  bool computes(ir::Value value) const { return computed.contains(value); }

 private:
  absl::flat_hash_map<IndexMap, int> map_ids_;
};

struct Partition {
  std::vector<Group> groups;
  std::vector<int> home;  // of each value: the group that stores it, -1 if none does
  Concats concats;

  // The value whose memory is `value`'s, or kNoValue: itself if it is a parameter, a call's result,
  // a concat or a root; through reshapes, their input.
  ir::Value StoredAs(const ir::Graph& graph, ir::Value value) const;
};

// Where a group that makes rows of a put at `map` stores them: a map of the put, by a variable that is data.
IndexMap PutMap(const ir::Graph& graph, const Factors& factors, Group& group, ir::Value put, int map);

// Do two puts store as many rows at the same places?
bool PutAlike(const ir::Graph& graph, ir::Value put, ir::Value other);

// Does the group put rows that others of the graph are put beside? One kernel is to store them all.
bool PutsBesideOthers(const ir::Graph& graph, const Group& group);

// The map at which a group reads an input of one of its nodes, which it needs at `map`; of a put, that of its rows.
// Nothing if a reshape's index cannot be split; then the reshape's result is read from memory. A take may add a
// variable.
std::optional<IndexMap> InputMap(const ir::Graph& graph, const Factors& factors, Group& group, ir::Value node,
                                 int input, int map);

}  // namespace torch_lazy::codegen
