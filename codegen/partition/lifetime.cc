// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/lifetime.h"

#include <algorithm>

#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen {
namespace {

std::vector<int> CountReaders(const ir::Graph& graph) {
  std::vector<int> readers(graph.nodes.size(), 0);
  for (const ir::Node& node : graph.nodes) {
    absl::InlinedVector<ir::Value, 4> inputs(node.inputs.begin(), node.inputs.end());
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const ir::Value input : inputs) ++readers[input];
  }
  for (const ir::Output& output : graph.outputs) ++readers[output.value];
  return readers;
}

// A view, or a conversion to more bytes, which is made where it is read.
bool LiesAsItsInput(const ir::Graph& graph, ir::Value v) {
  const ir::Node& node = graph.node(v);
  if (node.op != ir::Op::kCast) return ir::Info(node.op).kind == ir::Kind::kView;
  return ir::SizeBytes(graph.type(node.inputs[0]).dtype) <= ir::SizeBytes(node.type.dtype);
}

}  // namespace

Lifetimes MakeLifetimes(const ir::Graph& graph, const CompileOptions& options) {
  const std::vector<int> readers = CountReaders(graph);
  Lifetimes lifetimes;
  int calls = 0;
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    const ir::Node& node = graph.node(v);
    lifetimes.calls_before.push_back(calls);
    lifetimes.bytes.push_back(SeenBytes(node.type, options.seen_extents));
    const ir::Kind kind = ir::Info(node.op).kind;
    calls += node.op == ir::Op::kCall || kind == ir::Kind::kMatmul || kind == ir::Kind::kAttend;
    double ending = 0;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      ir::Value input = node.inputs[k];
      if (std::find(node.inputs.begin(), node.inputs.begin() + k, input) != node.inputs.begin() + k) continue;
      while (readers[input] == 1 && LiesAsItsInput(graph, input)) input = graph.node(input).inputs[0];
      const bool is_stored = ir::Info(graph.node(input).op).kind != ir::Kind::kLeaf;
      if (readers[input] == 1 && is_stored) ending += lifetimes.bytes[input];
    }
    lifetimes.bytes_ending.push_back(ending);
  }
  return lifetimes;
}

}  // namespace torch_lazy::codegen
