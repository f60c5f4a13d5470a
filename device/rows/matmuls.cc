// SPDX-License-Identifier: Apache-2.0
// Products of matrices, and what linear layers make of them. Integers and complex numbers are ATen's.
//
// 16-bit floats are multiplied by one library call where ATen's is cuBLAS, which sums up in f32, adds a bias and rounds
// once. What else it adds or scales before it rounds stays ATen's call: rounded in between, it would not be eager's. On
// the CPU all of them do, where ATen chooses among libraries by more than the operands.
#include "device/eager_overrides/runners.h"
#include "device/rows/rows.h"
#include "device/shapes/products.h"
#include "lazy/lower/lowering.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Value;

bool IsMultiplied(lazy::Lowering& call, int arg) {
  const DType dtype = call.b().dtype(call.Tensor(arg));
  return ir::IsFloat(dtype) && (!ir::IsHalf(dtype) || call.IsForCuda());
}

bool IsHalf(lazy::Lowering& call, int arg) { return ir::IsHalf(call.b().dtype(call.Tensor(arg))); }

Value Transposed(lazy::Lowering& call, Value x) { return call.b().Permute(x, {1, 0}); }

// All dims but the last as one.
Value AsRows(lazy::Lowering& call, int arg) {
  const Value x = call.Tensor(arg);
  if (call.b().rank(x) == 2) return x;
  int64_t rows = 1;
  const ir::Ints sizes = call.Sizes(arg);
  for (size_t k = 0; k + 1 < sizes.size(); ++k) rows *= sizes[k];
  return call.b().Reshape(x, {call.ExtentOf(rows), call.b().dims(x).back()});
}

bool Multiply(lazy::Lowering& call) {
  if (!IsMultiplied(call, 0)) return false;
  call.Return(0, call.b().Matmul(call.Tensor(0), call.Tensor(1)));
  return true;
}

// x y + bias, rounded once; false if the bias is not one for each row.
bool MultiplyAndAdd(lazy::Lowering& call, Value x, Value y, Value bias) {
  ir::Builder& b = call.b();
  if (b.rank(x) != 2 || b.type(bias) != ir::Type{b.dtype(x), {b.dims(y)[1]}}) return false;
  call.Return(0, b.Reshape(b.MatmulBias(x, y, bias), call.Result(0).dims));
  return true;
}

// beta * self + alpha * (x y); self does not count if beta is 0.
bool AddProduct(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  if (!IsMultiplied(call, 1)) return false;
  const double beta = call.StructuralNumber(3), alpha = call.StructuralNumber(4);
  if (IsHalf(call, 1) && beta == 1 && alpha == 1)
    return MultiplyAndAdd(call, call.Tensor(1), call.Tensor(2), call.Tensor(0));
  if (IsHalf(call, 1) && (beta != 0 || alpha != 1)) return false;
  Value sum = b.Matmul(call.Tensor(1), call.Tensor(2));
  if (alpha != 1) sum = b.Mul(sum, b.Like(sum, alpha));
  if (beta != 0) {
    Value self = b.BroadcastTo(call.Tensor(0), b.dims(sum));
    if (beta != 1) self = b.Mul(self, b.Like(self, beta));
    sum = b.Add(self, sum);
  }
  call.Return(0, sum);
  return true;
}

// linear(input, weight, bias)
bool Linear(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  if (!IsMultiplied(call, 0) || b.rank(call.Tensor(1)) != 2) return false;
  const Value x = AsRows(call, 0), weight = Transposed(call, call.Tensor(1));
  if (IsHalf(call, 0) && !call.IsNone(2)) return MultiplyAndAdd(call, x, weight, call.Tensor(2));
  Value y = b.Matmul(x, weight);
  if (!call.IsNone(2)) y = b.Add(b.BroadcastTo(call.Tensor(2), b.dims(y)), y);
  call.Return(0, b.Reshape(y, call.Result(0).dims));
  return true;
}

// linear_backward(self, grad_output, weight, output_mask)
bool LinearBackward(lazy::Lowering& call) {
  ir::Builder& b = call.b();
  if (!IsMultiplied(call, 0)) return false;
  const Value x = AsRows(call, 0), gradient = AsRows(call, 1);
  if (call.Wanted(0)) call.Return(0, b.Reshape(b.Matmul(gradient, call.Tensor(2)), b.dims(call.Tensor(0))));
  if (call.Wanted(1)) call.Return(1, b.Matmul(Transposed(call, gradient), x));
  if (!call.Wanted(2)) return true;
  const DType summed = IsHalf(call, 1) ? DType::kF32 : b.dtype(gradient);
  call.Return(2, b.Sum(b.Cast(gradient, summed), {0}, /*keepdim=*/false));
  return true;
}

constexpr lazy::Row kMatmulRows[] = {
    {"aten::addmm", AddProduct,
     kProduct | kStructuralScalars | kTakesAllValues | kHasMeta | kMetaTakesMore | kRefusesTruth,
     shapes::ProductAndSum},
    {"aten::baddbmm", AddProduct, kProduct | kStructuralScalars | kTakesAllValues | kHasMeta, shapes::ProductAndSum},
    {"aten::bmm", Multiply, kProduct | kTakesAllValues | kHasMeta, shapes::Product},
    {"aten::linear", Linear, kProduct | kWhole | kTakesAllValues, shapes::Linear},
    {"aten::linear_backward", LinearBackward, kProduct | kWhole | kTakesAllValues, shapes::LinearBackward,
     RunLinearBackward},
    {"aten::mm", Multiply, kProduct | kTakesAllValues | kHasMeta, shapes::Product},
    {.name = "aten::addbmm", .flags = kTakesAllValues | kRefusesTruth},
    {.name = "aten::addmv", .flags = kTakesAllValues | kRefusesTruth},
    {.name = "aten::addr", .flags = kTakesAllValues | kRefusesTruth},
    {.name = "aten::dot", .flags = kTakesAllValues, .shape = shapes::Dot},
    {.name = "aten::mv", .flags = kTakesAllValues, .shape = shapes::MatrixVector},
};

}  // namespace

Rows MatmulRows() { return kMatmulRows; }

}  // namespace torch_lazy::device
