// SPDX-License-Identifier: Apache-2.0
#include "test/ir/random_graph.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "ir/builder.h"

namespace torch_lazy::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kFloats[] = {0, -0.0, 1, -1, 2, 0.5, 3, 0.1, 8, kInf, -kInf, kNan, 1e-45, 1e30};
constexpr double kNeutral[] = {0, -0.0, 1};
constexpr int64_t kIntegers[] = {0, 1, -1, 2, 3, 7, -5, 255, 1 << 20};
constexpr DType kDTypes[] = {DType::kBool, DType::kU8,   DType::kI32, DType::kI64,
                             DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};
constexpr Op kFloatUnary[] = {Op::kNeg, Op::kAbs, Op::kSqrt, Op::kRecip, Op::kFloor, Op::kTrunc, Op::kRound};
constexpr Op kFloatBinary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMax, Op::kMin, Op::kFloorDiv};
constexpr Op kIntegerUnary[] = {Op::kNeg, Op::kAbs, Op::kNot};
constexpr Op kIntegerBinary[] = {Op::kAdd, Op::kSub, Op::kMul,      Op::kMax,      Op::kMin, Op::kAnd,
                                 Op::kOr,  Op::kXor, Op::kFloorDiv, Op::kTruncDiv, Op::kPow};
constexpr Op kBoolBinary[] = {Op::kAdd, Op::kMul, Op::kAnd, Op::kOr, Op::kXor};
constexpr Op kCompares[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe};
constexpr Op kReductions[] = {Op::kSum, Op::kProd, Op::kReduceMax, Op::kReduceMin, Op::kArgMax};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  RandomGraph Run(int num_nodes) {
    inputs_.symbols = {6, 4, 0};
    for (int k = 0; k < 4; ++k) AddParam();
    AddScalar(DType::kF64);
    AddScalar(DType::kI64);
    while (static_cast<int>(b_.graph().nodes.size()) < num_nodes) values_.push_back(Step());
    std::vector<Output> outputs;
    for (Value v : values_) {  // half of them, or few errors would reach an output
      if (Below(2) == 0) outputs.push_back({v});
    }
    return {b_.Finish(std::move(outputs)), std::move(inputs_)};
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  template <typename List>
  auto Any(const List& list) {
    return list[Below(static_cast<int>(std::size(list)))];
  }
  // Often one of the last, so that chains become long.
  Value AnyValue() {
    const int count = static_cast<int>(values_.size());
    return values_[Below(3) == 0 ? Below(count) : count - 1 - Below(std::min(count, 4))];
  }
  int64_t Size(Extent extent) const { return extent.Value(inputs_.symbols); }

  Extent AnyExtent() {
    const int k = Below(12);
    if (k == 0) return Extent::Symbol(2);  // empty
    return k < 5 ? Extent::Symbol(k % 2) : Extent::Constant(1 + k % 3);
  }

  void AddParam() {
    Type type{Any(kDTypes), {}};
    std::vector<int64_t> sizes;
    for (int rank = 1 + Below(3); rank > 0; --rank) type.dims.push_back(AnyExtent());
    for (Extent extent : type.dims) sizes.push_back(Size(extent));
    inputs_.params.push_back(AnyNumbers(type.dtype, std::move(sizes)));
    values_.push_back(b_.Param(type));
  }
  void AddScalar(DType dtype) {
    inputs_.scalars.push_back(AnyNumbers(dtype, {}));
    values_.push_back(b_.Scalar(dtype));
  }
  HostValue AnyNumbers(DType dtype, std::vector<int64_t> sizes) {
    std::vector<double> floats;
    std::vector<int64_t> integers;
    HostValue value = MakeHostValue(dtype, std::move(sizes));
    for (size_t i = 0; i < value.floats.size(); ++i) floats.push_back(Any(kFloats));
    for (size_t i = 0; i < value.integers.size(); ++i) integers.push_back(Any(kIntegers));
    return IsFloat(dtype) ? MakeFloats(dtype, value.sizes, floats) : MakeIntegers(dtype, value.sizes, integers);
  }

  Value Constant(DType dtype) {
    if (Below(2) == 0) return b_.Const(dtype, Any(kNeutral));
    return IsFloat(dtype) ? b_.Const(dtype, Any(kFloats)) : b_.Const(dtype, Any(kIntegers));
  }

  // A value of x's type: an old one, or a broadcast constant.
  Value Partner(Value x) {
    const Value other = AnyValue();
    if (b_.type(other) == b_.type(x)) return other;
    if (b_.dims(other) == b_.dims(x)) return b_.Cast(other, b_.dtype(x));
    if (b_.rank(other) == 0 && Below(2) == 0) return b_.FullLike(b_.Cast(other, b_.dtype(x)), x);
    return Below(3) == 0 ? x : b_.FullLike(Constant(b_.dtype(x)), x);
  }

  Value Step() {
    switch (Below(7)) {
      case 0:
        return b_.Cast(AnyValue(), Any(kDTypes));
      case 1:
      case 2:
        return Elementwise(Computable(AnyValue()));
      case 3:
        return Choice(AnyValue());
      case 4:
        return Reduction(Computable(AnyValue()));
      default:
        return Views(AnyValue());
    }
  }

  // 16-bit floats are only moved.
  Value Computable(Value x) { return IsHalf(b_.dtype(x)) ? b_.Cast(x, DType::kF32) : x; }

  Value Elementwise(Value x) {
    const DType dtype = b_.dtype(x);
    const bool unary = Below(3) == 0;
    if (IsFloat(dtype) && Below(6) == 0) return b_.Fma(x, Partner(x), Partner(x));
    if (IsFloat(dtype)) return unary ? b_.Unary(Any(kFloatUnary), x) : b_.Binary(Any(kFloatBinary), x, Partner(x));
    if (dtype == DType::kBool) return unary ? b_.Unary(Op::kNot, x) : b_.Binary(Any(kBoolBinary), x, Partner(x));
    return unary ? b_.Unary(Any(kIntegerUnary), x) : b_.Binary(Any(kIntegerBinary), x, Partner(x));
  }

  Value Choice(Value x) {
    const Value y = Computable(x);
    const Value condition =
        Below(4) == 0 ? b_.FullLike(Constant(DType::kBool), y) : b_.Binary(Any(kCompares), y, Partner(y));
    return b_.Where(condition, x, Partner(x));
  }

  Value Reduction(Value x) {
    if (b_.rank(x) == 0) return x;
    const int dim = Below(b_.rank(x));
    if (b_.dtype(x) == DType::kBool) return b_.Reduce(Below(2) == 0 ? Op::kAny : Op::kAll, x, {dim}, Below(2) == 0);
    const Op op = Any(kReductions);
    if (op == Op::kArgMax && Size(b_.dims(x)[dim]) == 0) return x;  // has no meaning
    return b_.Reduce(op, x, {dim}, Below(2) == 0);
  }

  Value Views(Value x) {
    for (int count = 1 + Below(4); count > 0; --count) x = Below(3) == 0 ? Permutation(x) : View(x);
    return x;
  }

  Value Permutation(Value x) {
    Ints order;
    for (int k = 0; k < b_.rank(x); ++k) order.push_back(k);
    std::shuffle(order.begin(), order.end(), random_);
    return b_.Permute(x, order);
  }

  Value View(Value x) {
    Dims dims = b_.dims(x);
    const int kind = Below(4);
    if (kind == 0) {  // a new dim of 1, at times expanded
      const int at = Below(b_.rank(x) + 1);
      dims.insert(dims.begin() + at, Extent::Constant(1));
      const Value y = b_.Reshape(x, dims);
      if (dims.size() > 4) return x;
      dims[at] = AnyExtent();
      return Below(2) == 0 ? y : b_.Expand(y, dims);
    }
    if (kind == 1) {  // without its ones
      dims.erase(std::remove_if(dims.begin(), dims.end(), [](Extent e) { return e.is_one(); }), dims.end());
      return b_.Reshape(x, dims);
    }
    if (b_.rank(x) == 0) return x;
    if (kind == 2) return Below(2) == 0 ? Flatten(x) : Concat(x);
    return Slice(x);
  }

  // Merges two neighbouring constants.
  Value Flatten(Value x) {
    Dims dims = b_.dims(x);
    for (size_t k = 0; k + 1 < dims.size(); ++k) {
      if (dims[k].is_symbol() || dims[k + 1].is_symbol()) continue;
      dims[k] = Extent::Constant(dims[k].constant() * dims[k + 1].constant());
      dims.erase(dims.begin() + static_cast<int>(k) + 1);
      return b_.Reshape(x, dims);
    }
    return x;
  }

  // x, perhaps a value of its type, and x again.
  Value Concat(Value x) {
    std::vector<int> dims;
    for (int k = 0; k < b_.rank(x); ++k) {
      if (!b_.dims(x)[k].is_symbol()) dims.push_back(k);
    }
    if (dims.empty()) return x;
    const int dim = Any(dims);
    const Value other = AnyValue();
    const Value parts[] = {x, b_.type(other) == b_.type(x) ? other : x, x};
    if (Below(4) == 0 && b_.rank(x) < 4) return b_.Stack(parts, dim);
    const int64_t extent = 3 * b_.dims(x)[dim].constant();
    return extent > 100 ? x : b_.Concat(parts, dim, Extent::Constant(extent));
  }

  Value Slice(Value x) {
    Dims sizes = b_.dims(x), starts(sizes.size(), Extent::Constant(0));
    Ints steps(sizes.size(), 1);
    const int dim = Below(b_.rank(x));
    const int size = static_cast<int>(Size(sizes[dim]));
    if (size == 0) return x;
    const int start = Below(size);
    const int left = size - start;
    steps[dim] = 1 + Below(2);
    starts[dim] = Extent::Constant(start);
    sizes[dim] = Extent::Constant((left + steps[dim] - 1) / steps[dim]);
    return b_.Slice(x, starts, sizes, steps);
  }

  std::mt19937 random_;
  Builder b_{"random"};
  EvaluateInputs inputs_;
  std::vector<Value> values_;
};

}  // namespace

RandomGraph MakeRandomGraph(uint32_t seed, int num_nodes) { return Generator(seed).Run(num_nodes); }

}  // namespace torch_lazy::ir
