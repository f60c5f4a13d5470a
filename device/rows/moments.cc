// SPDX-License-Identifier: Apache-2.0
// Variances and norms.
#include <cmath>

#include "device/rows/formula.h"
#include "device/rows/reduced_dims.h"
#include "device/rows/rows.h"
#include "device/rows/vector_norm.h"
#include "device/shapes/reductions.h"
#include "ir/decompose/statistics.h"

namespace torch_lazy::device {
namespace {

using ir::Ints;
using ir::Op;

// (self, dims?, correction?, keepdim) -> the variance or its root, and the mean
template <bool kRoot>
bool Variance(lazy::Lowering& call) {
  if (!IsReal(call, 0) || !InClass(kFloats, call.ComputeType())) return false;
  const Tensor x = ReadAsResult(call, 0);
  const Tensor correction = call.IsNone(2) ? x.Number(1) : Argument<Number>::Read(call, 2);
  const ir::decompose::MeanAndVariance moments =
      ir::decompose::VarianceAndMean(call.b(), x, DimsArgument(call, 1, x.rank()), correction, call.Bool(3));
  call.Return(0, kRoot ? call.b().Unary(Op::kSqrt, moments.variance) : moments.variance);
  if (call.num_results() > 1) call.Return(1, moments.mean);
  return true;
}

bool NormOver(lazy::Lowering& call, double order, const Ints& dims, bool keepdim) {
  if (!IsReal(call, 0) || !InClass(kFloats, call.ComputeType())) return false;
  const std::optional<ir::Value> norm = Norm(ReadAsResult(call, 0), order, dims, keepdim);
  if (norm) call.Return(0, *norm);
  return norm.has_value();
}

// (self, ord, dims?, keepdim, dtype?)
bool VectorNorm(lazy::Lowering& call) {
  return NormOver(call, call.StructuralNumber(1), DimsArgument(call, 2, RankOf(call)), call.Bool(3));
}

// (self, p?, dims, keepdim, ...)
bool NormWithDims(lazy::Lowering& call) {
  const double order = call.IsNone(1) ? 2 : call.StructuralNumber(1);
  return NormOver(call, order, DimsArgument(call, 2, RankOf(call)), call.Bool(3));
}

constexpr lazy::Row kMomentRows[] = {
    {"aten::var.correction", Variance<false>, kPlain, shapes::Spread},
    {"aten::std.correction", Variance<true>, kPlain, shapes::Spread},
    {"aten::var_mean.correction", Variance<false>, kPlain, shapes::SpreadAndMean},
    {"aten::std_mean.correction", Variance<true>, kPlain, shapes::SpreadAndMean},
    {"aten::linalg_vector_norm", VectorNorm, kStructuralScalars, shapes::VectorNorm},
    {"aten::norm.ScalarOpt_dim", NormWithDims, kStructuralScalars, shapes::NormOverDims},
    {"aten::norm.ScalarOpt_dim_dtype", NormWithDims, kStructuralScalars},
};

}  // namespace

std::optional<ir::Value> Norm(const Tensor& x, double order, const Ints& dims, bool keepdim) {
  const auto fold = [&](Op op, const Tensor& elements) { return x.builder().Reduce(op, elements, dims, keepdim); };
  if (order == 2) return x.builder().Unary(Op::kSqrt, fold(Op::kSum, Square(x)));
  if (order == 1) return fold(Op::kSum, Abs(x));
  if (order == 0) return fold(Op::kSum, Cast(NotEqual(x, 0.0), x.dtype()));
  if (order == HUGE_VAL) return fold(Op::kReduceMax, Abs(x));
  if (order == -HUGE_VAL) return fold(Op::kReduceMin, Abs(x));
  return std::nullopt;
}

Rows MomentRows() { return kMomentRows; }

}  // namespace torch_lazy::device
