// SPDX-License-Identifier: Apache-2.0
#include "codegen/cpu/emit.h"

#include "base/check.h"

namespace torch_lazy::codegen {

WrittenKernel EmitKernel(const ir::Graph& graph, Group::Shape shape, const Body& body,
                         absl::Span<const int64_t> seen_extents) {
  switch (shape) {
    case Group::Shape::kMap: {
      WrittenKernel written = EmitMap(graph, body, seen_extents);
      written.instance.grain = 512;
      return written;
    }
    case Group::Shape::kRows:
      return EmitRows(graph, body, seen_extents);
    case Group::Shape::kColumns: {
      WrittenKernel written = EmitColumns(graph, body, seen_extents);
      written.instance.grain = 16;
      return written;
    }
    case Group::Shape::kRowShares:
    case Group::Shape::kColumnShares:
      break;  // CUDA's alone
  }
  LAZY_CHECK(false, "a group without a shape");
  return {};
}

}  // namespace torch_lazy::codegen
