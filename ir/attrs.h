// SPDX-License-Identifier: Apache-2.0
// The attributes' fields, listed once, and which op uses which.
//
// Printing, parsing, equality and fingerprint call VisitAttrs, so an attribute added here is
// covered by all of them.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace torch_lazy::ir {

enum class Attr : uint16_t {
  kIndex = 1 << 0,
  kDim = 1 << 1,
  kDims = 1 << 2,
  kKeepdim = 1 << 3,
  kStarts = 1 << 4,
  kSteps = 1 << 5,
  kExtent = 1 << 6,
  kFloat = 1 << 7,
  kInteger = 1 << 8,
  kCallee = 1 << 9,
  kInout = 1 << 10,
  kMayFail = 1 << 11,
};

// Calls visit(Attr, name, &Attrs::field) for each field, in the order in which they are printed.
template <typename Visitor>
void VisitAttrs(Visitor&& visit) {
  visit(Attr::kCallee, "callee", &Attrs::callee);
  visit(Attr::kIndex, "index", &Attrs::index);
  visit(Attr::kDim, "dim", &Attrs::dim);
  visit(Attr::kDims, "dims", &Attrs::dims);
  visit(Attr::kKeepdim, "keepdim", &Attrs::keepdim);
  visit(Attr::kStarts, "starts", &Attrs::starts);
  visit(Attr::kSteps, "steps", &Attrs::steps);
  visit(Attr::kExtent, "extent", &Attrs::extent);
  visit(Attr::kFloat, "value", &Attrs::f);
  visit(Attr::kInteger, "value", &Attrs::i);
  visit(Attr::kInout, "inout", &Attrs::inout);
  visit(Attr::kMayFail, "may_fail", &Attrs::may_fail);
}

// The set of the attributes that a node of this op and dtype uses; the others have their defaults.
uint16_t UsedAttrs(Op op, DType dtype);
inline bool Uses(uint16_t set, Attr attr) { return (set & static_cast<uint16_t>(attr)) != 0; }

// Floats as bits: -0 is not 0, and a NaN is itself.
bool SameBits(double a, double b);

}  // namespace torch_lazy::ir
