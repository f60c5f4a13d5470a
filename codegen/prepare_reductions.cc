// SPDX-License-Identifier: Apache-2.0
#include "codegen/prepare_reductions.h"

#include <algorithm>

#include "codegen/typical.h"
#include "ir/passes/passes.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kManyResults = 16;  // enough for the threads
constexpr double kMuchWork = 65536;  // elements

bool IsReduced(const ir::Node& node, int dim) {
  return std::find(node.attrs.dims.begin(), node.attrs.dims.end(), dim) != node.attrs.dims.end();
}

// The reduced dims for a second step: the outermost, until the first step has many results. None if
// one step will do.
ir::Ints SecondStep(const ir::Graph& graph, const ir::Node& node, const CompileOptions& options) {
  if (node.op == ir::Op::kArgMax || node.op == ir::Op::kArgMin) return {};
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  double results = 1, work = 1;
  for (int k = 0; k < static_cast<int>(dims.size()); ++k) {
    const double extent = TypicalSize(ProductOf({dims[k]}), options);
    work *= extent;
    if (!IsReduced(node, k)) results *= extent;
  }
  if (results >= kManyResults || work < kMuchWork) return {};
  ir::Ints second;
  for (int k = 0; k < static_cast<int>(dims.size()) && results < kManyResults; ++k) {
    if (!IsReduced(node, k) || dims[k].is_one()) continue;
    second.push_back(k);
    results *= TypicalSize(ProductOf({dims[k]}), options);
  }
  const bool splits = second.size() < node.attrs.dims.size() && work / results >= kManyResults;
  return splits ? second : ir::Ints();
}

// Appends nodes to the new graph.
class Rewriter {
 public:
  explicit Rewriter(const CompileOptions& options) : options_(options) {}

  ir::Value Append(ir::Node node) {
    graph.nodes.push_back(std::move(node));
    return static_cast<ir::Value>(graph.nodes.size()) - 1;
  }

  ir::Value Reduction(const ir::Node& node) {
    const ir::Ints second = SecondStep(graph, node, options_);
    ir::Ints first;
    for (const int64_t dim : node.attrs.dims) {
      if (std::find(second.begin(), second.end(), dim) == second.end()) first.push_back(dim);
    }
    ir::Value value = Reduce(node, node.inputs[0], first);
    if (!second.empty()) value = Reduce(node, value, second);
    if (graph.type(value).dims == node.type.dims) return value;
    ir::Node reshape;
    reshape.op = ir::Op::kReshape;
    reshape.inputs = {value};
    reshape.type = node.type;
    return Append(std::move(reshape));
  }

  ir::Graph graph;

 private:
  ir::Value Reduce(const ir::Node& like, ir::Value input, const ir::Ints& dims) {
    ir::Node node = like;
    node.inputs = {input};
    node.attrs.dims = dims;
    node.attrs.keepdim = true;
    node.type.dims = graph.type(input).dims;
    for (const int64_t dim : dims) node.type.dims[dim] = ir::Extent::Constant(1);
    return Append(std::move(node));
  }

  const CompileOptions& options_;
};

}  // namespace

ir::Graph PrepareReductions(const ir::Graph& graph, const CompileOptions& options) {
  Rewriter rewriter(options);
  rewriter.graph.name = graph.name;
  std::vector<ir::Value> moved;
  for (const ir::Node& original : graph.nodes) {
    ir::Node node = original;
    for (ir::Value& input : node.inputs) input = moved[input];
    const bool is_reduction = ir::Info(node.op).kind == ir::Kind::kReduce;
    moved.push_back(is_reduction ? rewriter.Reduction(node) : rewriter.Append(std::move(node)));
  }
  for (const ir::Output& output : graph.outputs) {
    rewriter.graph.outputs.push_back({moved[output.value], output.into});
  }
  return ir::EliminateCommonSubexpressions(rewriter.graph);
}

}  // namespace torch_lazy::codegen
