// SPDX-License-Identifier: Apache-2.0
// Sums, products, extremes and their places.
#include "device/shapes/reductions.h"
#include "device/eager_overrides/runners.h"
#include "device/rows/formula.h"
#include "device/rows/reduced_dims.h"
#include "device/rows/rows.h"
#include "ir/decompose/softmax.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Ints;
using ir::Op;

// Reductions that keep the type they compute in.
bool Fold(lazy::Lowering& call, Op op, TypeClass type_class, const Ints& dims, bool keepdim) {
  if (!IsReal(call, 0) || !InClass(type_class, call.ComputeType())) return false;
  const Tensor x = ReadAsResult(call, 0);
  call.Return(0, call.b().Reduce(op, x, dims, keepdim));
  return true;
}

template <Op kOp, TypeClass kClass>
bool FoldAll(lazy::Lowering& call) {
  return Fold(call, kOp, kClass, AllDims(RankOf(call)), /*keepdim=*/false);
}

// (self, dims, keepdim, ...)
template <Op kOp, TypeClass kClass>
bool FoldDims(lazy::Lowering& call) {
  return Fold(call, kOp, kClass, DimsArgument(call, 1, RankOf(call)), call.Bool(2));
}

// As FoldDims, but an empty list means what it says.
template <Op kOp, TypeClass kClass>
bool FoldDim(lazy::Lowering& call) {
  return Fold(call, kOp, kClass, OneDim(call.Int(1), RankOf(call)), call.Bool(2));
}

bool MeanDims(lazy::Lowering& call) {
  if (!IsReal(call, 0) || !InClass(kFloats, call.ComputeType())) return false;
  const Tensor x = ReadAsResult(call, 0);
  call.Return(0, call.b().Mean(x, DimsArgument(call, 1, x.rank()), call.Bool(2)));
  return true;
}

// (self, dims, keepdim)
bool LogSumExpDims(lazy::Lowering& call) {
  if (!IsReal(call, 0) || !InClass(kFloats, call.ComputeType())) return false;
  const Tensor x = ReadAsResult(call, 0);
  call.Return(0, ir::decompose::LogSumExp(call.b(), x, DimsArgument(call, 1, x.rank()), call.Bool(2)));
  return true;
}

// Whether any or all elements are not zero; of u8 the answer is u8.
bool Question(lazy::Lowering& call, Op op, const Ints& dims, bool keepdim) {
  if (!IsReal(call, 0)) return false;
  const Tensor x = Cast({call.b(), call.Tensor(0)}, DType::kBool);
  call.Return(0, call.b().Reduce(op, x, dims, keepdim));
  return true;
}

template <Op kOp>
bool QuestionAll(lazy::Lowering& call) {
  return Question(call, kOp, AllDims(RankOf(call)), /*keepdim=*/false);
}

template <Op kOp>
bool QuestionDim(lazy::Lowering& call) {
  return Question(call, kOp, OneDim(call.Int(1), RankOf(call)), call.Bool(2));
}

template <Op kOp>
bool QuestionDims(lazy::Lowering& call) {
  if (!call.IsNone(1) && call.IntList(1).empty()) return false;  // here an empty list means no dim
  return Question(call, kOp, DimsArgument(call, 1, RankOf(call)), call.Bool(2));
}

ir::Value PlaceOf(const Tensor& x, Op op, const Ints& dim, bool keepdim) {
  if (dim.empty()) return x.builder().Const(DType::kI64, 0);
  return x.builder().Reduce(op, x, dim, keepdim);
}

// (self, dim, keepdim) -> (values, indices)
template <Op kExtreme, Op kPlace>
bool ExtremeAndPlace(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  const Tensor x = ReadAsResult(call, 0);
  const Ints dim = OneDim(call.Int(1), x.rank());
  call.Return(0, call.b().Reduce(kExtreme, x, dim, call.Bool(2)));
  call.Return(1, PlaceOf(x, kPlace, dim, call.Bool(2)));
  return true;
}

// (self, dim?, keepdim). Without a dim the place is in the flat order, which only one dim has here.
template <Op kPlace>
bool Place(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  const Tensor x = ReadWide(call, 0);
  if (call.IsNone(1) && x.rank() > 1) return false;
  call.Return(0, PlaceOf(x, kPlace, OneDim(call.IsNone(1) ? 0 : call.Int(1), x.rank()), call.Bool(2)));
  return true;
}

bool AMinMax(lazy::Lowering& call) {
  if (!IsReal(call, 0)) return false;
  const Tensor x = ReadAsResult(call, 0);
  const Ints dims = call.IsNone(1) ? AllDims(x.rank()) : OneDim(call.Int(1), x.rank());
  call.Return(0, call.b().Reduce(Op::kReduceMin, x, dims, call.Bool(2)));
  call.Return(1, call.b().Reduce(Op::kReduceMax, x, dims, call.Bool(2)));
  return true;
}

constexpr lazy::Row kReductionRows[] = {
    {"aten::sum", FoldAll<Op::kSum, kNumbers>, kPlain, shapes::Sum},
    {"aten::sum.dim_IntList", FoldDims<Op::kSum, kNumbers>, kPlain, shapes::SumOverDims},
    {"aten::mean.dim", MeanDims, kPlain, shapes::MeanOverDims},
    {"aten::prod", FoldAll<Op::kProd, kNumbers>, kPlain, shapes::Sum},
    {"aten::prod.dim_int", FoldDim<Op::kProd, kNumbers>, kPlain, shapes::ProdOverDim},
    {"aten::amax", FoldDims<Op::kReduceMax, kReals>, kPlain, shapes::ExtremeOverDims},
    {"aten::amin", FoldDims<Op::kReduceMin, kReals>, kPlain, shapes::ExtremeOverDims},
    {"aten::max", FoldAll<Op::kReduceMax, kReals>, kPlain, shapes::Extreme},
    {"aten::min", FoldAll<Op::kReduceMin, kReals>, kPlain, shapes::Extreme},
    {"aten::max.dim", ExtremeAndPlace<Op::kReduceMax, Op::kArgMax>, kPlain, shapes::ExtremeOverDim},
    {"aten::min.dim", ExtremeAndPlace<Op::kReduceMin, Op::kArgMin>, kPlain, shapes::ExtremeOverDim},
    {"aten::aminmax", AMinMax},
    {"aten::argmax", Place<Op::kArgMax>, kPlain, shapes::ArgExtreme},
    {"aten::argmin", Place<Op::kArgMin>, kPlain, shapes::ArgExtreme},
    {"aten::any", QuestionAll<Op::kAny>, kPlain, shapes::Truth},
    {"aten::any.dim", QuestionDim<Op::kAny>, kPlain, shapes::TruthOverDim},
    {"aten::any.dims", QuestionDims<Op::kAny>},
    {"aten::all", QuestionAll<Op::kAll>, kPlain, shapes::Truth},
    {"aten::all.dim", QuestionDim<Op::kAll>, kPlain, shapes::TruthOverDim},
    {"aten::all.dims", QuestionDims<Op::kAll>},
    {.name = "aten::mean", .shape = shapes::Mean},
    {.name = "aten::nansum", .shape = shapes::SumOverDims},
    {"aten::logsumexp", LogSumExpDims, kWhole, shapes::ExtremeOverDims},
    {.name = "aten::cumprod", .flags = kTakesAllValues, .shape = shapes::Cumulative},
    {.name = "aten::cumsum", .flags = kTakesAllValues, .shape = shapes::Cumulative},
    {.name = "aten::trace", .runner = RunTrace},
};

}  // namespace

Rows ReductionRows() { return kReductionRows; }

}  // namespace torch_lazy::device
