// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/emit.h"

#include "base/check.h"

namespace torch_lazy::codegen::cuda {

WrittenKernel EmitKernel(const ir::Graph& graph, Group::Shape shape, const Body& body, const CompileOptions& options) {
  switch (shape) {
    case Group::Shape::kMap:
      if (std::optional<WrittenKernel> tiles = EmitTiles(graph, body, options)) return *std::move(tiles);
      return EmitMap(graph, body, options);
    case Group::Shape::kRows:
      return EmitRows(graph, body, options);
    case Group::Shape::kColumns:
      return EmitColumns(graph, body, options);
    case Group::Shape::kRowShares:
    case Group::Shape::kColumnShares:
      return EmitShares(graph, shape, body);
  }
  LAZY_CHECK(false, "a group without a shape");
  return {};
}

}  // namespace torch_lazy::codegen::cuda
