// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/vector_products.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/passes/passes.h"

namespace torch_lazy::codegen {
namespace {

using ir::Op;
using ir::Value;

// The matrix whose rows lie along the sum of `node`, a product of one row by it; kNoValue if it is none.
Value MatrixOf(const ir::Graph& graph, const ir::Node& node) {
  const bool is_product = node.op == Op::kMatmul || node.op == Op::kMatmulBias;
  if (!is_product || node.type.rank() != 2 || !ir::IsHalf(node.type.dtype) || !node.type.dims[0].is_one())
    return ir::kNoValue;
  const ir::Node& matrix = graph.node(node.inputs[1]);
  return matrix.op == Op::kPermute && matrix.attrs.dims == ir::Ints{1, 0} ? matrix.inputs[0] : ir::kNoValue;
}

class Summer {
 public:
  explicit Summer(ir::Builder* b) : b_(*b) {}

  Value Sum(Value vector, Value matrix) {
    return b_.Sum(b_.Mul(Wide(matrix), ForEachRow(vector, b_.dims(matrix))), {1}, /*keepdim=*/false);
  }

 private:
  Value Wide(Value v) { return b_.Cast(v, ir::DType::kF32); }

  // Read as narrow as it is stored, since each row reads it. One value for matrices of equal size, which share a kernel
  // for it.
  Value ForEachRow(Value vector, const ir::Dims& dims) {
    for (const Rows& known : known_) {
      if (known.vector == vector && known.dims == dims) return known.wide;
    }
    known_.push_back({vector, dims, Wide(b_.Expand(vector, dims))});
    return known_.back().wide;
  }

  struct Rows {
    Value vector;
    ir::Dims dims;
    Value wide;
  };
  ir::Builder& b_;
  std::vector<Rows> known_;
};

}  // namespace

ir::Graph SumVectorProducts(const ir::Graph& graph) {
  const auto fires = [&](const ir::Node& node) { return MatrixOf(graph, node) != ir::kNoValue; };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), fires)) return graph;
  ir::Builder b(graph.name);
  b.Reserve(graph.nodes.size());
  Summer summer(&b);
  std::vector<Value> now;
  for (ir::Node node : graph.nodes) {
    b.set_origin(node.origin);
    const Value matrix = MatrixOf(graph, node);
    for (Value& input : node.inputs) input = now[input];
    if (matrix == ir::kNoValue) {
      now.push_back(b.Append(std::move(node)));
      continue;
    }
    Value sum = summer.Sum(node.inputs[0], now[matrix]);
    if (ir::HasBias(node)) sum = b.Add(sum, b.Cast(node.inputs[2], b.dtype(sum)));
    now.push_back(b.Reshape(b.Cast(sum, node.type.dtype), node.type.dims));
  }
  std::vector<ir::Output> outputs = graph.outputs;
  for (ir::Output& output : outputs) output.value = now[output.value];
  return ir::EliminateDeadCode(b.Finish(std::move(outputs)));
}

}  // namespace torch_lazy::codegen
