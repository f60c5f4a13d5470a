// SPDX-License-Identifier: Apache-2.0
// Where a loop nest reads a value: each index an affine form of loop variables.
//
// A kernel iterates over variables 0, 1, ...; the map of a value says which of its elements an
// iteration needs. Going from a node to its inputs, elementwise ops keep the map, and views change
// it, so views cost nothing. Only a reshape can fail: (i * n + j) can be split again into (i, j) if
// n is seen to be the extent.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "codegen/layout/factors.h"
#include "codegen/plan/polynomial.h"
#include "ir/graph.h"

namespace torch_lazy::codegen {

// offset + sum of coefficient * variable; sorted by variable, no coefficient is 0.
struct Affine {
  struct Term {
    int32_t variable;
    Polynomial coefficient;
    friend bool operator==(const Term& a, const Term& b) {
      return a.variable == b.variable && a.coefficient == b.coefficient;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Term& t) {
      return H::combine(std::move(h), t.variable, t.coefficient);
    }
  };
  Polynomial offset;
  absl::InlinedVector<Term, 2> terms;

  void Add(int32_t variable, const Polynomial& coefficient);
  void AddScaled(const Affine& other, const Polynomial& scale);
  Polynomial CoefficientOf(int32_t variable) const;  // 0 if it does not occur
  friend bool operator==(const Affine& a, const Affine& b) { return a.offset == b.offset && a.terms == b.terms; }
  template <typename H>
  friend H AbslHashValue(H h, const Affine& a) {
    return H::combine(std::move(h), a.offset, a.terms);
  }
};

using IndexMap = absl::InlinedVector<Affine, 4>;  // one per dim of the value

// The map over new variables first, first + 1, ... that reads a value of these dims in order: a
// variable per factor.
IndexMap IdentityMap(absl::Span<const ir::Extent> dims, const Factors& factors, int32_t first);

// The element's number in row-major order.
Affine Linearize(const IndexMap& map, absl::Span<const ir::Extent> dims, const Factors& factors);

// The map of a view's input, given that of the view. Nothing if a reshape's index cannot be split;
// `extents` are those of the variables.
std::optional<IndexMap> PullThroughView(const ir::Graph& graph, ir::Value view, const IndexMap& map,
                                        absl::Span<const Monomial> extents, const Factors& factors);

}  // namespace torch_lazy::codegen
