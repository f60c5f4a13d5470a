// SPDX-License-Identifier: Apache-2.0
// Operators over lists, as torch.optim and clip_grad_norm_ send them.
#include "device/rows/lists.h"
#include "device/rows/reduced_dims.h"
#include "device/rows/rows.h"
#include "device/rows/vector_norm.h"
#include "ir/decompose/interpolate.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Op;
using ir::decompose::Addcdiv;
using ir::decompose::Addcmul;
using ir::decompose::Lerp;

template <TypeClass kClass, Op kOp>
constexpr auto* EachUnary = &Each<kClass, [](Tensor x) { return Unary(kOp, x); }>;

// As in add.Tensor: one fused multiply-add.
Tensor AddScaled(const Tensor& x, const Tensor& y, const Tensor& alpha) {
  return IsFloat(x) ? Fma(alpha, y, x) : x + alpha * y;
}

bool CopyEach(lazy::Lowering& call) {
  for (int k = 0; k < call.num_results(); ++k) call.Return(k, call.ListTensor(1, k));
  return true;
}

bool ZeroEach(lazy::Lowering& call) {
  for (int k = 0; k < call.num_results(); ++k) {
    if (ir::IsComplex(call.Result(k).dtype)) return false;
  }
  for (int k = 0; k < call.num_results(); ++k) call.Return(k, call.b().Const(call.Result(k).dtype, 0));
  return true;
}

// (tensors, ord, dtype?)
bool NormEach(lazy::Lowering& call) {
  for (int k = 0; k < call.num_results(); ++k) {
    if (!ir::IsFloat(call.Result(k).dtype)) return false;
    const Tensor x = Item<Tensor>::Read(call, 0, k);
    const auto norm = Norm(x, call.StructuralNumber(1), AllDims(x.rank()), /*keepdim=*/false);
    if (!norm) return false;
    call.Return(k, *norm);
  }
  return true;
}

constexpr lazy::Row kForeachRows[] = {
    {"aten::_foreach_neg", EachUnary<kNumbers, Op::kNeg>},
    {"aten::_foreach_abs", EachUnary<kNumbers, Op::kAbs>},
    {"aten::_foreach_sqrt", EachUnary<kFloats, Op::kSqrt>},
    {"aten::_foreach_rsqrt", EachUnary<kFloats, Op::kRsqrt>},
    {"aten::_foreach_reciprocal", EachUnary<kFloats, Op::kRecip>},
    {"aten::_foreach_exp", EachUnary<kFloats, Op::kExp>},
    {"aten::_foreach_log", EachUnary<kFloats, Op::kLog>},
    {"aten::_foreach_add.List",
     Each<kNumbers, [](Tensor x, Tensor y, StoredNumber alpha) { return AddScaled(x, y, alpha); }>},
    {"aten::_foreach_add.Scalar", Each<kNumbers, [](Tensor x, StoredNumber c) { return x + c; }>},
    {"aten::_foreach_add.ScalarList", Each<kNumbers, [](Tensor x, StoredNumbers c) { return x + c; }>},
    {"aten::_foreach_add.Tensor",
     Each<kNumbers, [](Tensor x, Shared y, StoredNumber alpha) { return AddScaled(x, y, alpha); }>},
    {"aten::_foreach_sub.List",
     Each<kNumbers, [](Tensor x, Tensor y, StoredNumber alpha) { return AddScaled(x, y, -alpha); }>},
    {"aten::_foreach_sub.Scalar", Each<kNumbers, [](Tensor x, StoredNumber c) { return x - c; }>},
    {"aten::_foreach_sub.ScalarList", Each<kNumbers, [](Tensor x, StoredNumbers c) { return x - c; }>},
    {"aten::_foreach_mul.List", Each<kNumbers, [](Tensor x, Tensor y) { return x * y; }>},
    {"aten::_foreach_mul.Scalar", Each<kNumbers, [](Tensor x, Number c) { return x * c; }>},
    {"aten::_foreach_mul.ScalarList", Each<kNumbers, [](Tensor x, Numbers c) { return x * c; }>},
    {"aten::_foreach_mul.Tensor", Each<kNumbers, [](Tensor x, Shared y) { return x * y; }>},
    {"aten::_foreach_div.List", Each<kFloats, [](Tensor x, Tensor y) { return x / y; }>, kMayFail},
    {"aten::_foreach_div.Scalar", Each<kFloats, [](Tensor x, Number c) { return x / c; }>, kMayFail},
    {"aten::_foreach_div.ScalarList", Each<kFloats, [](Tensor x, Numbers c) { return x / c; }>, kMayFail},
    {"aten::_foreach_div.Tensor", Each<kFloats, [](Tensor x, Shared y) { return x / y; }>, kMayFail},
    {"aten::_foreach_pow.ScalarAndTensor", Each<kFloats, [](Number x, Tensor y) { return Binary(Op::kPow, x, y); }>,
     kMayFail},
    {"aten::_foreach_maximum.List", Each<kNumbers, [](Tensor x, Tensor y) { return Max(x, y); }>},
    {"aten::_foreach_maximum.Scalar", Each<kNumbers, [](Tensor x, StoredNumber c) { return Max(x, c); }>},
    {"aten::_foreach_minimum.List", Each<kNumbers, [](Tensor x, Tensor y) { return Min(x, y); }>},
    {"aten::_foreach_minimum.Scalar", Each<kNumbers, [](Tensor x, StoredNumber c) { return Min(x, c); }>},
    {"aten::_foreach_clamp_min.Scalar", Each<kNumbers, [](Tensor x, StoredNumber c) { return Max(x, c); }>},
    {"aten::_foreach_clamp_max.Scalar", Each<kNumbers, [](Tensor x, StoredNumber c) { return Min(x, c); }>},
    {"aten::_foreach_lerp.Scalar",
     Each<kFloats, [](Tensor x, Tensor end, Number w) { return Lerp(x.builder(), x, end, w); }>},
    {"aten::_foreach_lerp.ScalarList",
     Each<kFloats, [](Tensor x, Tensor end, Numbers w) { return Lerp(x.builder(), x, end, w); }>},
    {"aten::_foreach_lerp.List",
     Each<kFloats, [](Tensor x, Tensor end, Tensor w) { return Lerp(x.builder(), x, end, w); }>},
    {"aten::_foreach_addcmul.Scalar",
     Each<kFloats, [](Tensor x, Tensor y, Tensor z, Number v) { return Addcmul(x.builder(), x, y, z, v); }>},
    {"aten::_foreach_addcmul.ScalarList",
     Each<kFloats, [](Tensor x, Tensor y, Tensor z, Numbers v) { return Addcmul(x.builder(), x, y, z, v); }>},
    {"aten::_foreach_addcdiv.Scalar",
     Each<kFloats, [](Tensor x, Tensor y, Tensor z, Number v) { return Addcdiv(x.builder(), x, y, z, v); }>},
    {"aten::_foreach_addcdiv.ScalarList",
     Each<kFloats, [](Tensor x, Tensor y, Tensor z, Numbers v) { return Addcdiv(x.builder(), x, y, z, v); }>},
    {"aten::_foreach_copy_", CopyEach},
    {"aten::_foreach_zero_", ZeroEach},
    {"aten::_foreach_norm.Scalar", NormEach, kStructuralScalars},
    {.name = "aten::_foreach_addcdiv.Tensor", .flags = kTakesHostTensors},
    {.name = "aten::_foreach_addcmul.Tensor", .flags = kTakesHostTensors},
    {.name = "aten::_foreach_*", .flags = kWhole | kWholeInPlace | kUpdatesEach | kTakesAllValues},
};

}  // namespace

Rows ForeachRows() { return kForeachRows; }

}  // namespace torch_lazy::device
