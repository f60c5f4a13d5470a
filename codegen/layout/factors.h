// SPDX-License-Identifier: Apache-2.0
// Extents as products of smaller ones, learned from reshapes.
//
// A reshape of [s0, s1, s2] to [s3, s2] says s3 = s0 * s1. Written in such factors, a loop over s3
// becomes two loops whose index maps through the reshape stay affine, and equal products are seen
// to be equal.
//
// Where a tensor is empty, nothing follows from its reshape; a symbol may only stand for 0 if the
// products still hold.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "codegen/plan/polynomial.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

class Factors {
 public:
  explicit Factors(const ir::Graph& graph);

  // The extents whose product it is: none for 1. Outer factor first.
  ir::Dims Of(ir::Extent extent) const;
  ir::Dims Of(absl::Span<const ir::Extent> dims) const;  // one after the other
  Monomial SizeOf(ir::Extent extent) const { return ProductOf(Of(extent)); }

 private:
  void Learn(ir::Dims from, ir::Dims to);

  absl::flat_hash_map<ir::Extent, ir::Dims> known_;
};

}  // namespace torch_lazy::codegen
