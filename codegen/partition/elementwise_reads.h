// SPDX-License-Identifier: Apache-2.0
// What a node reads element for element: its inputs, and theirs through pointwise ops and reshapes,
// some of them. Not numbers that are broadcast: to share one saves nothing.
#pragma once

#include <optional>
#include <vector>

#include "codegen/partition/group.h"

namespace torch_lazy::codegen {

class ElementwiseReads {
 public:
  struct Read {
    ir::Value value;
    ir::Value by;  // a node that reads it as its `input`: the first, or another read
    int input;
  };

  ElementwiseReads(const ir::Graph& graph, ir::Value v);

  const std::vector<Read>& reads() const { return reads_; }

  // The map at which the group, if it needs the node at `map`, reads such a value. Nothing if it
  // cannot.
  std::optional<IndexMap> MapOf(const Read& read, const Factors& factors, Group& group, int map) const;

 private:
  const ir::Graph& graph_;
  const ir::Value v_;
  std::vector<Read> reads_;
};

}  // namespace torch_lazy::codegen
