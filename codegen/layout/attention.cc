// SPDX-License-Identifier: Apache-2.0
#include "codegen/layout/attention.h"

namespace torch_lazy::codegen {

Attention AttentionOf(const ir::Graph& graph, const Concats& concats, const Factors& factors, ir::Value attend) {
  const ir::Node& node = graph.node(attend);
  Attention attention;
  for (const ir::Value operand : node.inputs)
    attention.operands.push_back(StridedOperand(graph, concats, factors, operand));
  attention.result = MatrixAt(graph, concats, factors, attend);
  const ir::Dims& dims = node.type.dims;
  attention.batch = factors.SizeOf(dims[0]);
  attention.heads = factors.SizeOf(dims[1]);
  attention.rows = factors.SizeOf(dims[2]);
  attention.width = factors.SizeOf(dims[3]);
  attention.length = factors.SizeOf(graph.type(node.inputs[1]).dims[2]);
  return attention;
}

}  // namespace torch_lazy::codegen
