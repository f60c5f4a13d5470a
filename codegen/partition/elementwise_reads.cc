// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/elementwise_reads.h"

#include <algorithm>

namespace torch_lazy::codegen {

ElementwiseReads::ElementwiseReads(const ir::Graph& graph, ir::Value v) : graph_(graph), v_(v) {
  constexpr size_t kMost = 16;
  const auto add_inputs = [&](ir::Value of) {
    const ir::Node& node = graph.node(of);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ir::Op op = graph.node(node.inputs[k]).op;
      const bool is_number = ir::Info(op).kind == ir::Kind::kLeaf && op != ir::Op::kParam;
      if (op != ir::Op::kExpand && !is_number) reads_.push_back({node.inputs[k], of, static_cast<int>(k)});
    }
  };
  add_inputs(v);
  for (size_t k = 0; k < reads_.size() && reads_.size() < kMost; ++k) {
    const ir::Op op = graph.node(reads_[k].value).op;
    if (ir::Info(op).kind == ir::Kind::kElementwise || op == ir::Op::kReshape) add_inputs(reads_[k].value);
  }
}

std::optional<IndexMap> ElementwiseReads::MapOf(const Read& read, const Factors& factors, Group& group, int map) const {
  if (read.by != v_) {
    const auto by =
        std::find_if(reads_.begin(), reads_.end(), [&](const Read& other) { return other.value == read.by; });
    const std::optional<IndexMap> at = MapOf(*by, factors, group, map);
    if (!at.has_value()) return std::nullopt;
    map = group.Intern(*at);
  }
  return InputMap(graph_, factors, group, read.by, read.input, map);
}

}  // namespace torch_lazy::codegen
