// SPDX-License-Identifier: Apache-2.0
// Functions of three operands: selections, bounds, and the products and sums that ATen computes in one kernel.
#include "device/rows/formula.h"
#include "device/rows/rows.h"
#include "device/shapes/in_place.h"
#include "device/shapes/indexing.h"
#include "device/shapes/layers.h"
#include "ir/decompose/interpolate.h"
#include "torch_compat/clamp.h"

namespace torch_lazy::device {
namespace {

using ir::decompose::Addcdiv;
using ir::decompose::Addcmul;
using ir::decompose::Lerp;

using Bound = std::optional<Number>;
using Bounds = std::optional<Tensor>;

// NaN wins everywhere.
Tensor ClampBetween(Tensor x, const Bounds& low, const Bounds& high) {
  if (low) x = Max(x, *low);
  return high ? Min(x, *high) : x;
}

Tensor Clamp(Tensor x, const Bound& low, const Bound& high) {
  if (torch_compat::kOneBoundMayBeNan || (low && high)) return ClampBetween(x, low, high);
  if (low) return Where(x < *low, *low, x);  // NaN bounds nothing
  return high ? Where(x > *high, *high, x) : x;
}

Tensor AddProduct(Tensor x, Tensor y, Tensor z, Tensor scale) {
  if (!IsFloat(x)) return x + scale * y * z;
  return {x.builder(), Addcmul(x.builder(), x, y, z, scale)};
}

constexpr lazy::Row kTernaryRows[] = {
    {"aten::where.self", Formula<kReals, [](Mask c, Tensor x, Tensor y) { return Where(c, x, y); }>, kPlain,
     shapes::Where},
    {.name = "aten::masked_fill.Scalar",
     .lower = Formula<kReals, [](Tensor x, Mask m, Number v) { return Where(m, v, x); }>,
     .flags = kMayFail,
     .shape = shapes::MaskedFill,
     .shape_in_place = shapes::Copy},
    {.name = "aten::masked_fill.Tensor",
     .lower = Formula<kReals, [](Tensor x, Mask m, Tensor v) { return Where(m, v, x); }>,
     .flags = kMayFail,
     .shape = shapes::MaskedFill,
     .shape_in_place = shapes::Copy},
    {"aten::clamp", Formula<kNumbers, [](Tensor x, Bound low, Bound high) { return Clamp(x, low, high); }>},
    {"aten::clamp.Tensor",
     Formula<kNumbers, [](Tensor x, Bounds low, Bounds high) { return ClampBetween(x, low, high); }>},
    {"aten::clamp_min", Formula<kNumbers, [](Tensor x, Number low) { return Max(x, low); }>},
    {"aten::clamp_max", Formula<kNumbers, [](Tensor x, Number high) { return Min(x, high); }>},
    {"aten::clamp_min.Tensor", Formula<kNumbers, [](Tensor x, Tensor low) { return Max(x, low); }>},
    {"aten::clamp_max.Tensor", Formula<kNumbers, [](Tensor x, Tensor high) { return Min(x, high); }>},
    {"aten::hardtanh", Formula<kNumbers, [](Tensor x, Number low, Number high) { return Min(Max(x, low), high); }>,
     kPlain, shapes::Clamp},
    {"aten::addcmul", Formula<kNumbers, [](Tensor x, Tensor y, Tensor z, Number v) { return AddProduct(x, y, z, v); }>,
     kRefusesTruth},
    {"aten::addcdiv",
     Formula<kFloats, [](Tensor x, Tensor y, Tensor z, Number v) { return Addcdiv(x.builder(), x, y, z, v); }>,
     kRefusesTruth},
    {"aten::lerp.Scalar", Formula<kFloats, [](Tensor x, Tensor end, Number w) { return Lerp(x.builder(), x, end, w); }>,
     kKeepsNumber},
    {"aten::lerp.Tensor",
     Formula<kFloats, [](Tensor x, Tensor end, Tensor w) { return Lerp(x.builder(), x, end, w); }>},
};

}  // namespace

Rows TernaryRows() { return kTernaryRows; }

}  // namespace torch_lazy::device
