// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/relu_epilogues.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/passes/passes.h"

namespace torch_lazy::codegen {
namespace {

using ir::kNoValue;
using ir::Op;
using ir::Value;

class ReluTaker {
 public:
  explicit ReluTaker(const ir::Graph& graph) : graph_(graph), readers_(graph.nodes.size()) {
    for (size_t v = 0; v < graph.nodes.size(); ++v) {
      for (const Value input : graph.nodes[v].inputs) {
        if (!Contains(readers_[input], static_cast<Value>(v))) readers_[input].push_back(static_cast<Value>(v));
      }
    }
    for (const ir::Output& output : graph.outputs) readers_[output.value].push_back(kNoValue);
  }

  ir::Graph Run() const {
    const Value num_values = static_cast<Value>(graph_.nodes.size());
    std::vector<Value> product_of(graph_.nodes.size());  // per node: what it is the ReLU of
    std::vector<bool> has_relu(graph_.nodes.size());     // per node: some node is its
    for (Value v = 0; v < num_values; ++v) {
      product_of[v] = ProductOfRelu(v);
      if (product_of[v] != kNoValue) has_relu[product_of[v]] = true;
    }
    ir::Builder b(graph_.name);
    std::vector<Value> now;
    for (Value v = 0; v < num_values; ++v) {
      ir::Node node = graph_.node(v);
      b.set_origin(node.origin);
      if (product_of[v] != kNoValue) {
        now.push_back(b.Reshape(now[product_of[v]], node.type.dims));
        continue;
      }
      for (Value& input : node.inputs) input = now[input];
      if (has_relu[v]) node.op = Op::kMatmulBiasRelu;
      now.push_back(b.Append(std::move(node)));
    }
    std::vector<ir::Output> outputs = graph_.outputs;
    for (ir::Output& output : outputs) output.value = now[output.value];
    return ir::EliminateDeadCode(b.Finish(std::move(outputs)));
  }

 private:
  static bool Contains(const std::vector<Value>& values, Value v) {
    return std::find(values.begin(), values.end(), v) != values.end();
  }

  bool IsZero(Value v) const {
    while (graph_.node(v).op == Op::kExpand || graph_.node(v).op == Op::kReshape) v = graph_.node(v).inputs[0];
    const ir::Node& node = graph_.node(v);
    return node.op == Op::kConst && ir::IsFloat(node.type.dtype) && node.attrs.f == 0 && !std::signbit(node.attrs.f);
  }

  Value OnlyReader(Value v) const { return readers_[v].size() == 1 ? readers_[v][0] : kNoValue; }

  // The matmul_bias whose ReLU, rounded as it is, `v` is: cast(where(x < 0, 0, x)) of x, the product in f32. kNoValue:
  // of none.
  Value ProductOfRelu(Value v) const {
    const ir::Node& cast = graph_.node(v);
    if (cast.op != Op::kCast) return kNoValue;
    const Value where = cast.inputs[0];
    const ir::Node& choice = graph_.node(where);
    if (choice.op != Op::kWhere || OnlyReader(where) != v || !IsZero(choice.inputs[1])) return kNoValue;
    const Value is_negative = choice.inputs[0], x = choice.inputs[2];
    const ir::Node& less = graph_.node(is_negative);
    if (less.op != Op::kLt || OnlyReader(is_negative) != where || less.inputs[0] != x || !IsZero(less.inputs[1]))
      return kNoValue;
    if (graph_.node(x).op != Op::kCast || readers_[x].size() != 2) return kNoValue;
    Value product = graph_.node(x).inputs[0], reader = x;
    if (graph_.node(product).op == Op::kReshape && OnlyReader(product) == reader) {
      reader = product;
      product = graph_.node(product).inputs[0];
    }
    const ir::Node& matmul = graph_.node(product);
    return matmul.op == Op::kMatmulBias && OnlyReader(product) == reader && matmul.type.dtype == cast.type.dtype
               ? product
               : kNoValue;
  }

  const ir::Graph& graph_;
  std::vector<std::vector<Value>> readers_;  // per node, each once; kNoValue: an output
};

}  // namespace

ir::Graph TakeReluIntoMatmuls(const ir::Graph& graph) {
  const auto has_bias = [](const ir::Node& node) { return node.op == Op::kMatmulBias; };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), has_bias)) return graph;
  return ReluTaker(graph).Run();
}

}  // namespace torch_lazy::codegen
