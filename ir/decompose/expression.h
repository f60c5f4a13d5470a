// SPDX-License-Identifier: Apache-2.0
// Formulas over a Builder, written as formulas.
//
//   const Expression x(b, input);
//   return x / (1 + Exp(-x));
//
// Operands broadcast to each other: ranks are aligned at the last dim, extents that are 1 grow, and
// a plain number is a constant of the other operand's dtype. Nothing promotes: dtypes must be
// equal.
#pragma once

#include "ir/builder.h"

namespace torch_lazy::ir::decompose {

class Expression {
 public:
  Expression(Builder& b, Value value) : b_(&b), value_(value) {}
  operator Value() const { return value_; }  // NOLINT: an expression is a value with its builder

  Builder& builder() const { return *b_; }
  const Dims& dims() const { return b_->dims(value_); }
  DType dtype() const { return b_->dtype(value_); }
  int rank() const { return b_->rank(value_); }
  Expression Number(double constant) const {  // rank 0, of this dtype
    return {*b_, b_->Const(dtype(), constant)};
  }

 private:
  Builder* b_;
  Value value_;
};

Expression Unary(Op op, const Expression& x);
Expression Binary(Op op, const Expression& x, const Expression& y);
Expression Where(const Expression& condition, const Expression& x, const Expression& y);
Expression Fma(const Expression& x, const Expression& y, const Expression& z);  // x * y + z
Expression Sum(const Expression& x, Ints dims, bool keepdim);
Expression Mean(const Expression& x, Ints dims, bool keepdim);

inline Expression operator-(const Expression& x) { return Unary(Op::kNeg, x); }
inline Expression Exp(const Expression& x) { return Unary(Op::kExp, x); }
inline Expression Log(const Expression& x) { return Unary(Op::kLog, x); }
inline Expression Log1p(const Expression& x) { return Unary(Op::kLog1p, x); }
inline Expression Tanh(const Expression& x) { return Unary(Op::kTanh, x); }
inline Expression Erf(const Expression& x) { return Unary(Op::kErf, x); }
inline Expression Abs(const Expression& x) { return Unary(Op::kAbs, x); }

// Each with an expression or a plain number on either side. A Value is an int, so ints are refused:
// numbers are written 1.0, and values become expressions first.
#define TORCH_LAZY_BINARY(Name, op)                                                             \
  inline Expression Name(const Expression& x, const Expression& y) { return Binary(op, x, y); } \
  inline Expression Name(const Expression& x, double y) { return Binary(op, x, x.Number(y)); }  \
  inline Expression Name(double x, const Expression& y) { return Binary(op, y.Number(x), y); }  \
  Expression Name(const Expression& x, Value y) = delete;                                       \
  Expression Name(Value x, const Expression& y) = delete;
TORCH_LAZY_BINARY(operator+, Op::kAdd)
TORCH_LAZY_BINARY(operator-, Op::kSub)
TORCH_LAZY_BINARY(operator*, Op::kMul)
TORCH_LAZY_BINARY(operator/, Op::kDiv)
TORCH_LAZY_BINARY(operator<, Op::kLt)
TORCH_LAZY_BINARY(operator<=, Op::kLe)
TORCH_LAZY_BINARY(operator>, Op::kGt)
TORCH_LAZY_BINARY(operator>=, Op::kGe)
TORCH_LAZY_BINARY(Equal, Op::kEq)
TORCH_LAZY_BINARY(NotEqual, Op::kNe)
TORCH_LAZY_BINARY(Max, Op::kMax)
TORCH_LAZY_BINARY(Min, Op::kMin)
#undef TORCH_LAZY_BINARY

inline Expression Square(const Expression& x) { return x * x; }

}  // namespace torch_lazy::ir::decompose
