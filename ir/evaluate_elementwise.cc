// SPDX-License-Identifier: Apache-2.0
#include "ir/evaluate_elementwise.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/round.h"

namespace torch_lazy::ir {
namespace {

constexpr size_t kNumOps = 0
#define X(...) +1
    TORCH_LAZY_OP_LIST(X)
#undef X
    ;

// As c10::div_floor_floating: exact quotients stay exact where a / b would round up to the next
// integer.
template <typename T>
T FloorDivFloat(T a, T b) {
  if (b == 0) return a / b;
  const T mod = std::fmod(a, b);
  T quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  const T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + 1 : floored;
}

template <typename T>
T RemainderFloat(T a, T b) {
  const T mod = std::fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

// What a function of up to three numbers of one type gives.
template <typename T>
struct Meaning {
  Op op;
  T (*of)(T a, T b, T c);
};

// Transcendental functions in double, then rounded.
template <typename T>
constexpr Meaning<T> kMeaningsOfFloats[] = {
    {Op::kNeg, [](T a, T, T) { return -a; }},
    {Op::kAbs, [](T a, T, T) { return std::abs(a); }},
    {Op::kSqrt, [](T a, T, T) { return std::sqrt(a); }},
    {Op::kRsqrt, [](T a, T, T) { return 1 / std::sqrt(a); }},
    {Op::kRecip, [](T a, T, T) { return 1 / a; }},
    {Op::kExp, [](T a, T, T) { return static_cast<T>(std::exp(static_cast<double>(a))); }},
    {Op::kExp2, [](T a, T, T) { return static_cast<T>(std::exp2(static_cast<double>(a))); }},
    {Op::kExpm1, [](T a, T, T) { return static_cast<T>(std::expm1(static_cast<double>(a))); }},
    {Op::kLog, [](T a, T, T) { return static_cast<T>(std::log(static_cast<double>(a))); }},
    {Op::kLog2, [](T a, T, T) { return static_cast<T>(std::log2(static_cast<double>(a))); }},
    {Op::kLog10, [](T a, T, T) { return static_cast<T>(std::log10(static_cast<double>(a))); }},
    {Op::kLog1p, [](T a, T, T) { return static_cast<T>(std::log1p(static_cast<double>(a))); }},
    {Op::kSin, [](T a, T, T) { return static_cast<T>(std::sin(static_cast<double>(a))); }},
    {Op::kCos, [](T a, T, T) { return static_cast<T>(std::cos(static_cast<double>(a))); }},
    {Op::kTan, [](T a, T, T) { return static_cast<T>(std::tan(static_cast<double>(a))); }},
    {Op::kTanh, [](T a, T, T) { return static_cast<T>(std::tanh(static_cast<double>(a))); }},
    {Op::kErf, [](T a, T, T) { return static_cast<T>(std::erf(static_cast<double>(a))); }},
    {Op::kFloor, [](T a, T, T) { return std::floor(a); }},
    {Op::kCeil, [](T a, T, T) { return std::ceil(a); }},
    {Op::kTrunc, [](T a, T, T) { return std::trunc(a); }},
    {Op::kRound, [](T a, T, T) { return std::nearbyint(a); }},
    {Op::kAdd, [](T a, T b, T) { return a + b; }},
    {Op::kSub, [](T a, T b, T) { return a - b; }},
    {Op::kMul, [](T a, T b, T) { return a * b; }},
    {Op::kDiv, [](T a, T b, T) { return a / b; }},
    {Op::kFloorDiv, [](T a, T b, T) { return FloorDivFloat(a, b); }},
    {Op::kTruncDiv, [](T a, T b, T) { return std::trunc(a / b); }},
    {Op::kFmod, [](T a, T b, T) { return std::fmod(a, b); }},
    {Op::kRemainder, [](T a, T b, T) { return RemainderFloat(a, b); }},
    {Op::kPow, [](T a, T b, T) { return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b))); }},
    {Op::kAtan2,
     [](T a, T b, T) { return static_cast<T>(std::atan2(static_cast<double>(a), static_cast<double>(b))); }},
    {Op::kMax, [](T a, T b, T) { return std::isnan(a) || a > b ? a : b; }},
    {Op::kMin, [](T a, T b, T) { return std::isnan(a) || a < b ? a : b; }},
    {Op::kFma, [](T a, T b, T c) { return std::fma(a, b, c); }},
};

int64_t PowInteger(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = base;
  for (; exponent != 0; exponent >>= 1, factor *= factor) {
    if ((exponent & 1) != 0) result *= factor;
  }
  return static_cast<int64_t>(result);
}

int64_t FloorDivInteger(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

// The smallest number divided by -1 traps on x86, so division by -1 is negation.
int64_t DivideInteger(Op op, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return op == Op::kFmod || op == Op::kRemainder ? 0 : static_cast<int64_t>(-static_cast<uint64_t>(a));
  if (op == Op::kFloorDiv) return FloorDivInteger(a, b);
  if (op == Op::kTruncDiv) return a / b;
  if (op == Op::kFmod) return a % b;
  return a - FloorDivInteger(a, b) * b;
}

// Arithmetic in unsigned 64 bits wraps; WrapTo then keeps the low bits, which do not depend on the
// high ones.
constexpr uint64_t Unsigned(int64_t a) { return static_cast<uint64_t>(a); }

constexpr Meaning<int64_t> kMeaningsOfIntegers[] = {
    {Op::kNeg, [](int64_t a, int64_t, int64_t) { return static_cast<int64_t>(-Unsigned(a)); }},
    {Op::kAbs, [](int64_t a, int64_t, int64_t) { return a < 0 ? static_cast<int64_t>(-Unsigned(a)) : a; }},
    {Op::kNot, [](int64_t a, int64_t, int64_t) { return ~a; }},
    {Op::kAdd, [](int64_t a, int64_t b, int64_t) { return static_cast<int64_t>(Unsigned(a) + Unsigned(b)); }},
    {Op::kSub, [](int64_t a, int64_t b, int64_t) { return static_cast<int64_t>(Unsigned(a) - Unsigned(b)); }},
    {Op::kMul, [](int64_t a, int64_t b, int64_t) { return static_cast<int64_t>(Unsigned(a) * Unsigned(b)); }},
    {Op::kFma,
     [](int64_t a, int64_t b, int64_t c) { return static_cast<int64_t>(Unsigned(a) * Unsigned(b) + Unsigned(c)); }},
    {Op::kMax, [](int64_t a, int64_t b, int64_t) { return a > b ? a : b; }},
    {Op::kMin, [](int64_t a, int64_t b, int64_t) { return a < b ? a : b; }},
    {Op::kAnd, [](int64_t a, int64_t b, int64_t) { return a & b; }},
    {Op::kOr, [](int64_t a, int64_t b, int64_t) { return a | b; }},
    {Op::kXor, [](int64_t a, int64_t b, int64_t) { return a ^ b; }},
    {Op::kPow, [](int64_t a, int64_t b, int64_t) { return PowInteger(a, b); }},
    {Op::kFloorDiv, [](int64_t a, int64_t b, int64_t) { return DivideInteger(Op::kFloorDiv, a, b); }},
    {Op::kTruncDiv, [](int64_t a, int64_t b, int64_t) { return DivideInteger(Op::kTruncDiv, a, b); }},
    {Op::kFmod, [](int64_t a, int64_t b, int64_t) { return DivideInteger(Op::kFmod, a, b); }},
    {Op::kRemainder, [](int64_t a, int64_t b, int64_t) { return DivideInteger(Op::kRemainder, a, b); }},
};

template <typename T>
struct Comparison {
  Op op;
  bool (*of)(T a, T b);
};

template <typename T>
constexpr Comparison<T> kComparisons[] = {
    {Op::kEq, [](T a, T b) { return a == b; }}, {Op::kNe, [](T a, T b) { return a != b; }},
    {Op::kLt, [](T a, T b) { return a < b; }},  {Op::kLe, [](T a, T b) { return a <= b; }},
    {Op::kGt, [](T a, T b) { return a > b; }},  {Op::kGe, [](T a, T b) { return a >= b; }},
};

template <typename Row, size_t kNumRows>
constexpr decltype(Row::of) Find(const Row (&rows)[kNumRows], Op op) {
  for (const Row& row : rows) {
    if (row.op == op) return row.of;
  }
  return nullptr;
}

// The same by the op's number.
template <typename Row, size_t kNumRows>
constexpr auto ByOp(const Row (&rows)[kNumRows]) {
  std::array<decltype(Row::of), kNumOps> functions{};
  for (const Row& row : rows) functions[static_cast<size_t>(row.op)] = row.of;
  return functions;
}

// An op that is computed element by element has a meaning: these stand in ir/evaluate.cc.
constexpr bool HasMeaning(Op op, Kind kind, DTypeRule rule) {
  if (kind != Kind::kElementwise || op == Op::kCast || op == Op::kWhere || op == Op::kBernoulli) return true;
  if (rule == DTypeRule::kCompare) return Find(kComparisons<double>, op) != nullptr;
  return Find(kMeaningsOfFloats<double>, op) != nullptr || Find(kMeaningsOfIntegers, op) != nullptr;
}
#define X(name, text, kind, inputs, rule, ...) \
  static_assert(HasMeaning(Op::k##name, Kind::kind, DTypeRule::rule), text " has no meaning");
TORCH_LAZY_OP_LIST(X)
#undef X

template <typename T>
T MeaningOf(const std::array<T (*)(T, T, T), kNumOps>& functions, Op op, T a, T b, T c) {
  const auto function = functions[static_cast<size_t>(op)];
  LAZY_CHECK(function != nullptr, "no meaning for ", Info(op).text, " of these numbers");
  return function(a, b, c);
}

template <typename T>
T Float(Op op, T a, T b, T c) {
  static constexpr auto kFunctions = ByOp(kMeaningsOfFloats<T>);
  return MeaningOf<T>(kFunctions, op, a, b, c);
}

int64_t Integer(Op op, int64_t a, int64_t b, int64_t c) {
  static constexpr auto kFunctions = ByOp(kMeaningsOfIntegers);
  return MeaningOf<int64_t>(kFunctions, op, a, b, c);
}

template <typename T>
bool CompareAs(Op op, T a, T b) {
  const auto compare = Find(kComparisons<T>, op);
  LAZY_CHECK(compare != nullptr, Info(op).text, " compares nothing");
  return compare(a, b);
}

template <typename T>
T At(absl::Span<const T> inputs, size_t k) {
  return k < inputs.size() ? inputs[k] : T(0);
}

}  // namespace

double ElementOf(Op op, DType dtype, absl::Span<const double> inputs) {
  const double a = At(inputs, 0), b = At(inputs, 1), c = At(inputs, 2);
  if (dtype == DType::kF64) return Float<double>(op, a, b, c);
  return Float<float>(op, static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

int64_t ElementOf(Op op, DType dtype, absl::Span<const int64_t> inputs) {
  const int64_t a = At(inputs, 0), b = At(inputs, 1), c = At(inputs, 2);
  if (dtype == DType::kBool && op == Op::kNot) return a == 0;
  return WrapTo(dtype, Integer(op, a, b, c));
}

bool Compare(Op op, double a, double b) { return CompareAs(op, a, b); }
bool Compare(Op op, int64_t a, int64_t b) { return CompareAs(op, a, b); }

}  // namespace torch_lazy::ir
