// SPDX-License-Identifier: Apache-2.0
// Rows of elementwise operators as formulas of their arguments.
//
//   {"aten::threshold_backward",
//    Formula<kFloats, [](Tensor g, Tensor x, Number t) { return Where(x <= t, x.Number(0), g); }>},
//
// A formula takes the arguments of the schema in order; it need not name the last ones. They are given in the type that
// the row computes in, which is the result's, or f32 for a 16-bit float, and return casts to the result's: one
// rounding, as in ATen's kernels for 16-bit floats. A tensor of another type than the result is first rounded to it, as
// TensorIterator does.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "ir/decompose/expression.h"
#include "lazy/lower/lowering.h"

namespace torch_lazy::device {

// What a formula's parameter may be.
using Tensor = ir::decompose::Expression;
struct Number : Tensor {
  using Tensor::Tensor;
};  // a Scalar or a float; rank 0
struct Exact : Tensor {
  using Tensor::Tensor;
};  // a tensor, without the rounding to the result's type
struct Mask : Tensor {
  using Tensor::Tensor;
};  // a tensor, as bool
// and std::optional of these, bool, int64_t, absl::string_view.

inline Tensor Cast(const Tensor& x, ir::DType dtype) { return {x.builder(), x.builder().Cast(x, dtype)}; }
// As if it had been stored in `dtype`.
inline Tensor Rounded(const Tensor& x, ir::DType dtype) { return Cast(Cast(x, dtype), x.dtype()); }
inline bool IsFloat(const Tensor& x) { return ir::IsFloat(x.dtype()); }
// f32 for the 16-bit floats.
inline ir::DType Wide(ir::DType dtype) { return ir::IsHalf(dtype) ? ir::DType::kF32 : dtype; }

// The types a row computes in.
enum TypeClass {
  kFloats,
  kNumbers,   // floats and integers
  kIntegers,  // and bool
  kReals,     // all but complex
};
bool InClass(TypeClass type_class, ir::DType dtype);

// The tensor is there and real.
bool IsReal(lazy::Lowering& call, int arg);

// Tensor `arg` in its own type, 16-bit floats widened.
Tensor ReadWide(lazy::Lowering& call, int arg);
// Tensor `arg` rounded to the type of result 0, and widened.
Tensor ReadAsResult(lazy::Lowering& call, int arg);

// How a formula's parameter is read.
template <typename T>
struct Argument;

template <>
struct Argument<Tensor> {
  static bool Fits(lazy::Lowering& call, int arg) { return IsReal(call, arg); }
  static Tensor Read(lazy::Lowering& call, int arg) { return ReadAsResult(call, arg); }
};

template <>
struct Argument<Exact> {
  static bool Fits(lazy::Lowering& call, int arg) { return IsReal(call, arg); }
  static Exact Read(lazy::Lowering& call, int arg) {
    return {call.b(), call.b().Cast(call.Tensor(arg), call.ComputeType())};
  }
};

template <>
struct Argument<Mask> {
  static bool Fits(lazy::Lowering& call, int arg) { return IsReal(call, arg); }
  static Mask Read(lazy::Lowering& call, int arg) {
    return {call.b(), call.b().Cast(call.Tensor(arg), ir::DType::kBool)};
  }
};

template <>
struct Argument<Number> {
  static bool Fits(lazy::Lowering& call, int arg) { return !call.IsNone(arg); }
  static Number Read(lazy::Lowering& call, int arg) { return {call.b(), call.Number(arg, call.ComputeType())}; }
};

template <typename T>
struct Argument<std::optional<T>> {
  static bool Fits(lazy::Lowering& call, int arg) { return call.IsNone(arg) || Argument<T>::Fits(call, arg); }
  static std::optional<T> Read(lazy::Lowering& call, int arg) {
    return call.IsNone(arg) ? std::nullopt : std::make_optional(Argument<T>::Read(call, arg));
  }
};

template <>
struct Argument<bool> {
  static bool Fits(lazy::Lowering&, int) { return true; }
  static bool Read(lazy::Lowering& call, int arg) { return call.Bool(arg); }
};

template <>
struct Argument<int64_t> {
  static bool Fits(lazy::Lowering&, int) { return true; }
  static int64_t Read(lazy::Lowering& call, int arg) { return call.Int(arg); }
};

template <>
struct Argument<absl::string_view> {
  static bool Fits(lazy::Lowering&, int) { return true; }
  static absl::string_view Read(lazy::Lowering& call, int arg) { return call.String(arg); }
};

template <typename Function, typename Result, typename... Args, size_t... kArg>
bool LowerFormula(lazy::Lowering& call, Result (Function::*)(Args...) const, const Function& formula,
                  std::index_sequence<kArg...>) {
  if (!(... && Argument<Args>::Fits(call, kArg))) return false;
  // Braces: arguments are read from left to right.
  const std::tuple<Args...> args{Argument<Args>::Read(call, kArg)...};
  call.Return(0, std::apply(formula, args));
  return true;
}

template <typename Function, typename Result, typename... Args>
constexpr std::index_sequence_for<Args...> Indices(Result (Function::*)(Args...) const) {
  return {};
}

// The lowering of a row with one result.
template <TypeClass kClass, auto kFormula>
bool Formula(lazy::Lowering& call) {
  using Function = decltype(kFormula);
  constexpr auto kCall = &Function::operator();
  return InClass(kClass, call.ComputeType()) && LowerFormula(call, kCall, kFormula, Indices(kCall));
}

// Rows that are one primitive.
template <TypeClass kClass, ir::Op kOp>
constexpr auto* Primitive1 = &Formula<kClass, [](Tensor x) { return Unary(kOp, x); }>;
template <TypeClass kClass, ir::Op kOp>
constexpr auto* Primitive2 = &Formula<kClass, [](Tensor x, Tensor y) { return Binary(kOp, x, y); }>;

}  // namespace torch_lazy::device
