// SPDX-License-Identifier: Apache-2.0
//
// Rules that hold bit for bit, for every operand, NaN and -0 included; all NaNs count as one. A
// rule looks at a node whose inputs have been simplified, and gives a value of the node's type, or
// kNoValue where it does not apply. Each rule makes the graph smaller or replaces an op by a
// cheaper one, so one walk ends.
//
// Not here, because they do not hold: x + 0 (-0 + 0 is 0), x * 0 (NaN, infinities), x - x, x / x,
// -(x - y) -> y - x (0 and -0), (x + y) - y, x / y -> x * (1 / y), and any change of the order of
// float additions.
#include <cmath>
#include <utility>

#include "ir/passes/numbers.h"
#include "ir/passes/passes.h"
#include "ir/passes/rebuild.h"
#include "ir/round.h"

namespace torch_lazy::ir {
namespace {

// A node as rules see it: its operands, and what made them.
struct Match {
  Builder& b;
  const Node& node;

  Value in(int k) const { return node.inputs[k]; }
  bool is(int k, double number) const { return IsConstant(b.graph(), node.inputs[k], number); }
  bool floats() const { return IsFloat(node.type.dtype); }
  // The operand of the `op` that made `v`, or kNoValue.
  Value Inside(Value v, Op op) const {
    const Node& maker = b.graph().node(v);
    return maker.op == op ? maker.inputs[0] : kNoValue;
  }
  Value Full(double number) const { return b.Full(b.Const(node.type.dtype, number), node.type.dims); }
};

// Whether each number of `from` is one of `to`: then a cast through `to` loses nothing.
bool Holds(DType to, DType from) {
  if (from == to || from == DType::kBool) return true;
  if (IsFloat(from)) {
    return to == DType::kF64 || (to == DType::kF32 && from != DType::kF64);
  }
  if (IsFloat(to)) {
    const int64_t digits = to == DType::kF64 ? 53 : to == DType::kF32 ? 24 : to == DType::kF16 ? 11 : 8;
    return 8 * SizeBytes(from) <= digits;
  }
  if (to == DType::kBool || to == DType::kU8) return false;
  return SizeBytes(to) > SizeBytes(from);
}

// cast(view(cast(x, U)), V) -> view(x) where x is of V and U holds it, for any number of views.
Value CastBack(const Match& m) {
  absl::InlinedVector<Value, 2> views;
  Value v = m.in(0);
  for (; Info(m.b.graph().node(v).op).kind == Kind::kView; v = m.b.graph().node(v).inputs[0]) views.push_back(v);
  Value x = m.Inside(v, Op::kCast);
  if (x == kNoValue || m.b.dtype(x) != m.node.type.dtype || !Holds(m.b.dtype(v), m.b.dtype(x))) return kNoValue;
  for (; !views.empty(); views.pop_back()) {
    Node view = m.b.graph().node(views.back());
    view.inputs[0] = x;
    view.type.dtype = m.node.type.dtype;
    x = m.b.Append(std::move(view));
  }
  return x;
}

// cast(cast(x, U), V) -> cast(x, V) where U holds every x: the same number is converted.
Value Cast(const Match& m) {
  const Value x = m.Inside(m.in(0), Op::kCast);
  if (x == kNoValue) return CastBack(m);
  return Holds(m.b.dtype(m.in(0)), m.b.dtype(x)) ? m.b.Cast(x, m.node.type.dtype) : kNoValue;
}

Value Neg(const Match& m) { return m.Inside(m.in(0), Op::kNeg); }  // -(-x) flips a bit twice
Value Not(const Match& m) { return m.Inside(m.in(0), Op::kNot); }

// abs(abs x), abs(-x): the sign is cleared in any case. Not abs(-x) of u8, where -1 is 255.
Value Abs(const Match& m) {
  if (m.Inside(m.in(0), Op::kAbs) != kNoValue) return m.in(0);
  const Value x = m.Inside(m.in(0), Op::kNeg);
  const bool has_sign = m.node.type.dtype != DType::kU8;
  return x != kNoValue && has_sign ? m.b.Unary(Op::kAbs, x) : kNoValue;
}

// Rounding an integer gives it back.
Value RoundAgain(const Match& m) {
  for (Op op : {Op::kFloor, Op::kCeil, Op::kTrunc, Op::kRound}) {
    if (m.Inside(m.in(0), op) != kNoValue) return m.in(0);
  }
  return kNoValue;
}

Value Add(const Match& m) {
  const double neutral = m.floats() ? -0.0 : 0;  // x + -0 is x even for x = 0 and x = -0; x + 0 is not
  if (m.is(1, neutral)) return m.in(0);
  if (m.is(0, neutral)) return m.in(1);
  if (m.node.type.dtype == DType::kBool) return kNoValue;
  // x - y is x + -y by definition (IEEE 754, 5.4.1).
  if (const Value y = m.Inside(m.in(1), Op::kNeg); y != kNoValue) return m.b.Sub(m.in(0), y);
  if (const Value x = m.Inside(m.in(0), Op::kNeg); x != kNoValue) return m.b.Sub(m.in(1), x);
  return kNoValue;
}

Value Sub(const Match& m) {
  if (m.is(1, 0)) return m.in(0);  // x - 0 is x, also for x = -0
  if (m.in(0) == m.in(1) && !m.floats()) return m.Full(0);
  const Value y = m.Inside(m.in(1), Op::kNeg);
  return y == kNoValue ? kNoValue : m.b.Add(m.in(0), y);
}

Value Mul(const Match& m) {
  if (m.is(1, 1)) return m.in(0);  // the exact product is x, and needs no rounding
  if (m.is(0, 1)) return m.in(1);
  if (!m.floats() && (m.is(0, 0) || m.is(1, 0))) return m.Full(0);
  // The sign of a product is the exclusive or of the signs: two flips cancel.
  const Value x = m.Inside(m.in(0), Op::kNeg), y = m.Inside(m.in(1), Op::kNeg);
  return x == kNoValue || y == kNoValue ? kNoValue : m.b.Mul(x, y);
}

// The inverse of a power of two, if it is a power of two of this dtype; else 0.
double ExactInverse(DType dtype, double number) {
  int exponent = 0;
  if (std::abs(std::frexp(number, &exponent)) != 0.5) return 0;
  const double inverse = 1 / number;
  return RoundTo(dtype, inverse) == inverse && std::isfinite(inverse) ? inverse : 0;
}

Value Div(const Match& m) {
  if (m.is(1, 1)) return m.in(0);
  if (m.is(0, 1)) return m.b.Unary(Op::kRecip, m.in(1));  // its definition
  // x / 2^k and x * 2^-k are the same real number, rounded once.
  const Node* divisor = ConstantOf(m.b.graph(), m.in(1));
  const double inverse = divisor == nullptr ? 0 : ExactInverse(m.node.type.dtype, divisor->attrs.f);
  return inverse == 0 ? kNoValue : m.b.Mul(m.in(0), m.Full(inverse));
}

Value IntegerDiv(const Match& m) { return !m.floats() && m.is(1, 1) ? m.in(0) : kNoValue; }

// pow itself may be 2 ulp off; x * x is the nearest number, and what eager computes.
Value Pow(const Match& m) {
  if (m.is(1, 1)) return m.in(0);
  if (m.is(1, 2)) return m.b.Mul(m.in(0), m.in(0));
  if (m.floats() && m.is(1, -1)) return m.b.Unary(Op::kRecip, m.in(0));
  return m.is(1, 0) ? m.Full(1) : kNoValue;  // pow(NaN, 0) is 1
}

Value Fma(const Match& m) {
  if (m.is(0, 1)) return m.b.Add(m.in(1), m.in(2));  // the product is exact, so one rounding remains
  if (m.is(1, 1)) return m.b.Add(m.in(0), m.in(2));
  return m.is(2, m.floats() ? -0.0 : 0) ? m.b.Mul(m.in(0), m.in(1)) : kNoValue;
}

Value SameOperands(const Match& m) { return m.in(0) == m.in(1) ? m.in(0) : kNoValue; }

Value And(const Match& m) {
  if (m.node.type.dtype != DType::kBool) return SameOperands(m);
  if (m.is(0, 1)) return m.in(1);
  if (m.is(1, 1)) return m.in(0);
  return m.is(0, 0) || m.is(1, 0) ? m.Full(0) : SameOperands(m);
}

Value Or(const Match& m) {
  if (m.is(0, 0)) return m.in(1);
  if (m.is(1, 0)) return m.in(0);
  if (m.node.type.dtype == DType::kBool && (m.is(0, 1) || m.is(1, 1))) return m.Full(1);
  return SameOperands(m);
}

Value Xor(const Match& m) { return m.in(0) == m.in(1) ? m.Full(0) : kNoValue; }

Value Where(const Match& m) {
  if (m.in(1) == m.in(2)) return m.in(1);
  if (m.is(0, 1)) return m.in(1);
  if (m.is(0, 0)) return m.in(2);
  const Value condition = m.Inside(m.in(0), Op::kNot);
  return condition == kNoValue ? kNoValue : m.b.Where(condition, m.in(2), m.in(1));
}

// A reduction over dims of extent 1 folds nothing. Not a sum of floats: it begins with 0, and 0 +
// -0 is 0.
Value ReduceOne(const Match& m) {
  if (m.node.op == Op::kSum && m.floats()) return kNoValue;
  for (int64_t dim : m.node.attrs.dims) {
    if (!m.b.dims(m.in(0))[dim].is_one()) return kNoValue;
  }
  return m.b.Reshape(m.in(0), m.node.type.dims);
}

// A product whose sums have one term each: x y + 0, which is 0 where x y is -0, as the sum is. Rotary embeddings
// multiply frequencies by positions so.
Value MatmulOfOne(const Match& m) {
  const Dims& dims = m.b.dims(m.in(0));
  if (!dims.back().is_one()) return kNoValue;
  const DType wide = IsHalf(m.node.type.dtype) ? DType::kF32 : m.node.type.dtype;
  const auto operand = [&](int k) { return m.b.Expand(m.b.Cast(m.in(k), wide), m.node.type.dims); };
  const Value zero = m.b.Full(m.b.Const(wide, 0.0), m.node.type.dims);
  return m.b.Cast(m.b.Fma(operand(0), operand(1), zero), m.node.type.dtype);
}

Value Simplify(Builder& b, const Node& node) {
  const Match m{b, node};
  switch (node.op) {
    case Op::kCast:
      return Cast(m);
    case Op::kNeg:
      return Neg(m);
    case Op::kNot:
      return Not(m);
    case Op::kAbs:
      return Abs(m);
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kRound:
      return RoundAgain(m);
    case Op::kAdd:
      return Add(m);
    case Op::kSub:
      return Sub(m);
    case Op::kMul:
      return Mul(m);
    case Op::kDiv:
      return Div(m);
    case Op::kFloorDiv:
    case Op::kTruncDiv:
      return IntegerDiv(m);
    case Op::kPow:
      return Pow(m);
    case Op::kFma:
      return Fma(m);
    case Op::kMax:
    case Op::kMin:
      return SameOperands(m);
    case Op::kAnd:
      return And(m);
    case Op::kOr:
      return Or(m);
    case Op::kXor:
      return Xor(m);
    case Op::kWhere:
      return Where(m);
    case Op::kSum:
    case Op::kProd:
    case Op::kReduceMax:
    case Op::kReduceMin:
    case Op::kAny:
    case Op::kAll:
      return ReduceOne(m);
    case Op::kMatmul:
      return MatmulOfOne(m);
    default:
      return kNoValue;
  }
}

}  // namespace

Graph SimplifyAlgebra(const Graph& graph) { return Rebuild(graph, Simplify); }

}  // namespace torch_lazy::ir
