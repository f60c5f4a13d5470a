// SPDX-License-Identifier: Apache-2.0
#include "codegen/split_reductions.h"

#include <algorithm>
#include <optional>

#include "codegen/typical.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kManyResults = 16;  // enough for the threads
constexpr double kMuchWork = 65536;  // elements

bool IsReduced(const ir::Node& node, int dim) {
  return std::find(node.attrs.dims.begin(), node.attrs.dims.end(), dim) != node.attrs.dims.end();
}

// The reduced dims for the second step: the outermost, until the first step has many results.
std::optional<ir::Ints> SecondStep(const ir::Graph& graph, const ir::Node& node,
                                   const CompileOptions& options) {
  if (ir::Info(node.op).kind != ir::Kind::kReduce) return std::nullopt;
  if (node.op == ir::Op::kArgMax || node.op == ir::Op::kArgMin) return std::nullopt;
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  double results = 1, work = 1;
  for (int k = 0; k < static_cast<int>(dims.size()); ++k) {
    const double extent = TypicalSize(ProductOf({dims[k]}), options);
    work *= extent;
    if (!IsReduced(node, k)) results *= extent;
  }
  if (results >= kManyResults || work < kMuchWork) return std::nullopt;
  ir::Ints second;
  for (int k = 0; k < static_cast<int>(dims.size()) && results < kManyResults; ++k) {
    if (!IsReduced(node, k) || dims[k].is_one()) continue;
    second.push_back(k);
    results *= TypicalSize(ProductOf({dims[k]}), options);
  }
  const auto left = node.attrs.dims.size() - second.size();
  return left == 0 || work / results < kManyResults ? std::nullopt : std::make_optional(second);
}

}  // namespace

ir::Graph SplitReductions(const ir::Graph& graph, const CompileOptions& options) {
  ir::Graph result;
  result.name = graph.name;
  std::vector<ir::Value> moved;
  for (const ir::Node& original : graph.nodes) {
    ir::Node node = original;
    for (ir::Value& input : node.inputs) input = moved[input];
    const std::optional<ir::Ints> second = SecondStep(graph, original, options);
    if (second.has_value()) {
      // The first step keeps its dims, so that the second's have the same numbers.
      ir::Node first = node;
      first.attrs.keepdim = true;
      first.attrs.dims.clear();
      first.type.dims = result.type(node.inputs[0]).dims;
      for (const int64_t dim : node.attrs.dims) {
        if (std::find(second->begin(), second->end(), dim) != second->end()) continue;
        first.attrs.dims.push_back(dim);
        first.type.dims[dim] = ir::Extent::Constant(1);
      }
      result.nodes.push_back(std::move(first));
      node.inputs[0] = static_cast<ir::Value>(result.nodes.size()) - 1;
    }
    result.nodes.push_back(std::move(node));
    moved.push_back(static_cast<ir::Value>(result.nodes.size()) - 1);
  }
  for (const ir::Output& output : graph.outputs)
    result.outputs.push_back({moved[output.value], output.into});
  return result;
}

}  // namespace torch_lazy::codegen
