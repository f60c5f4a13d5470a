// SPDX-License-Identifier: Apache-2.0
// Random graphs mean the same compiled as evaluated.
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/builder.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;
using ir::Extent;
using ir::Op;
using ir::Value;

// Grows a graph by ops picked at random, over extents s0, s1, s2 and their products.
class GraphMaker {
 public:
  explicit GraphMaker(uint32_t seed) : random_(seed) {}

  ir::Graph Make() {
    const ir::Dims shapes[] = {{a_, b_}, {b_}, {a_, b_, c_}, {c_, a_}, {}};
    for (const ir::Dims& dims : shapes) values_.push_back(b_ir_.Param({DType::kF32, dims}));
    const int params = static_cast<int>(values_.size());
    const int steps = 4 + Pick(20);
    for (int k = 0; k < steps; ++k) Grow();
    std::vector<ir::Output> outputs;
    for (int k = 0; k < 3; ++k)
      outputs.push_back({values_[values_.size() - 1 - Pick(std::min<int>(6, static_cast<int>(values_.size())))], -1});
    // Sometimes one is written back to a parameter of its type.
    const int into = Pick(params);
    if (b_ir_.type(outputs[0].value) == b_ir_.type(values_[into])) outputs[0].into = into;
    return b_ir_.Finish(outputs);
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  Value Any() { return values_[Pick(static_cast<int>(values_.size()))]; }

  // Another value of these dims, if need be by broadcasting a number.
  Value Like(Value x) {
    for (int tries = 0; tries < 8; ++tries) {
      const Value y = Any();
      if (b_ir_.type(y) == b_ir_.type(x)) return y;
    }
    return b_ir_.Like(x, 0.75);
  }

  void Grow() {
    const Value x = Any();
    const int rank = b_ir_.rank(x);
    switch (Pick(17)) {
      case 0:
        values_.push_back(b_ir_.Unary(Pick(2) != 0 ? Op::kTanh : Op::kNeg, x));
        break;
      case 1:
        values_.push_back(b_ir_.Binary(Pick(2) != 0 ? Op::kAdd : Op::kSub, x, Like(x)));
        break;
      case 2:
        values_.push_back(b_ir_.Binary(Pick(2) != 0 ? Op::kMul : Op::kMax, x, Like(x)));
        break;
      case 3:
        values_.push_back(b_ir_.Where(b_ir_.Binary(Op::kLt, x, Like(x)), Like(x), x));
        break;
      case 4:
        Permute(x);
        break;
      case 5: {
        if (rank == 0) break;
        const Value sum = b_ir_.Reduce(Pick(2) != 0 ? Op::kSum : Op::kReduceMax, x, {Pick(rank)},
                                       /*keepdim=*/true);
        values_.push_back(sum);
        values_.push_back(b_ir_.Sub(x, b_ir_.Expand(sum, b_ir_.dims(x))));
        break;
      }
      case 6: {
        if (rank < 2) break;
        values_.push_back(b_ir_.Reduce(Op::kSum, x, {Pick(rank)}, /*keepdim=*/false));
        break;
      }
      case 7:
        Reshape(x);
        break;
      case 9:
        Slice(x);
        break;
      case 10:
        Take(x);
        break;
      case 11:
        values_.push_back(b_ir_.Cast(b_ir_.Cast(x, Pick(2) != 0 ? DType::kBF16 : DType::kF16), DType::kF32));
        break;
      case 12:
        Call(x);
        break;
      case 13:
        Concat(x);
        break;
      case 14:
        Matmul(x);
        break;
      case 15:
        Stack(x);
        break;
      case 16:
        Put(x);
        break;
      case 8: {
        const ir::Dims dims = {a_, b_, c_};
        if (rank == 2 && b_ir_.dims(x) == ir::Dims{b_, c_}) values_.push_back(b_ir_.BroadcastTo(x, dims));
        if (rank == 1 && b_ir_.dims(x)[0] == b_) values_.push_back(b_ir_.BroadcastTo(x, {a_, b_}));
        if (rank == 0) values_.push_back(b_ir_.BroadcastTo(x, Pick(2) != 0 ? ir::Dims{c_, a_} : ir::Dims{a_, b_}));
        break;
      }
    }
  }

  void Permute(Value x) {
    ir::Ints order;
    for (int k = 0; k < b_ir_.rank(x); ++k) order.push_back(k);
    std::shuffle(order.begin(), order.end(), random_);
    values_.push_back(b_ir_.Permute(x, order));
  }

  // Merges or splits [a, b] and s3 = a * b.
  void Reshape(Value x) {
    const ir::Dims dims = b_ir_.dims(x);
    for (size_t k = 0; k + 1 < dims.size(); ++k) {
      if (dims[k] != a_ || dims[k + 1] != b_) continue;
      ir::Dims merged(dims.begin(), dims.begin() + k);
      merged.push_back(ab_);
      merged.insert(merged.end(), dims.begin() + k + 2, dims.end());
      values_.push_back(b_ir_.Reshape(x, merged));
      return;
    }
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] != ab_) continue;
      ir::Dims split(dims.begin(), dims.begin() + k);
      split.push_back(a_);
      split.push_back(b_);
      split.insert(split.end(), dims.begin() + k + 1, dims.end());
      values_.push_back(b_ir_.Reshape(x, split));
      return;
    }
  }

  // All but the first index of a dim, then broadcast back.
  void Slice(Value x) {
    const ir::Dims dims = b_ir_.dims(x);
    if (dims.empty()) return;
    const int dim = Pick(static_cast<int>(dims.size()));
    ir::Dims starts(dims.size(), Extent::Constant(0)), sizes = dims;
    const ir::Ints steps(dims.size(), 1);
    sizes[dim] = Extent::Constant(1);
    values_.push_back(b_ir_.Expand(b_ir_.Slice(x, starts, sizes, steps), dims));
  }

  // Reverses x along a dim.
  void Take(Value x) {
    const ir::Dims dims = b_ir_.dims(x);
    if (dims.empty()) return;
    const int dim = Pick(static_cast<int>(dims.size()));
    const Value extent = b_ir_.ExtentOf(dims[dim]);
    const Value last = b_ir_.Full(b_ir_.Sub(extent, b_ir_.Const(DType::kI64, 1)), dims);
    const Value index = b_ir_.Sub(last, b_ir_.Iota({DType::kI64, dims}, dim));
    values_.push_back(b_ir_.Take(x, index, dim));
  }

  // Rows of another value into x, backwards along a dim; or one row into its last place.
  void Put(Value x) {
    const ir::Dims dims = b_ir_.dims(x);
    if (dims.empty()) return;
    const int dim = Pick(static_cast<int>(dims.size()));
    ir::Dims sizes = dims;
    if (Pick(2) == 0) sizes[dim] = Extent::Constant(1);
    const ir::Dims starts(dims.size(), Extent::Constant(0));
    const Value rows = b_ir_.Slice(Like(x), starts, sizes, ir::Ints(dims.size(), 1));
    const ir::Dims one_dim = {sizes[dim]};
    const Value last = b_ir_.Sub(b_ir_.ExtentOf(dims[dim]), b_ir_.Const(DType::kI64, 1));
    const Value index = b_ir_.Sub(b_ir_.Full(last, one_dim), b_ir_.Iota({DType::kI64, one_dim}, 0));
    values_.push_back(b_ir_.Put(x, Pick(2) == 0 ? rows : b_ir_.Unary(Op::kNeg, rows), index, dim));
  }

  // x and another side by side along a dim of s0, s4 = 2 * s0 together; sometimes a half of that.
  void Concat(Value x) {
    if (Pick(3) == 0) ConcatReshaped(x);
    ir::Dims dims = b_ir_.dims(x);
    const auto found = std::find(dims.begin(), dims.end(), a_);
    if (found == dims.end()) return;
    const int dim = static_cast<int>(found - dims.begin());
    const Value parts[] = {x, Pick(4) == 0 ? x : Like(x)};
    Value whole = b_ir_.Concat(parts, dim, twice_a_);
    if (Pick(2) == 0) whole = b_ir_.Unary(Op::kNeg, whole);
    if (Pick(2) == 0) values_.push_back(whole);
    ir::Dims starts(dims.size(), Extent::Constant(0));
    if (Pick(2) == 0) starts[dim] = a_;
    values_.push_back(b_ir_.Slice(whole, starts, dims, ir::Ints(dims.size(), 1)));
  }

  // A value times another of its dims transposed, kept small; at times by a view that a library takes as it is.
  void Matmul(Value x) {
    const int rank = b_ir_.rank(x);
    if (rank < 2 || rank > 3) return;
    const Value y = b_ir_.Permute(Like(x), rank == 2 ? ir::Ints{1, 0} : ir::Ints{0, 2, 1});
    const bool sums = rank == 3 && Pick(2) == 0;
    const Value left = Pick(2) == 0 ? x : y, right = left == x ? y : x;
    const Value product = sums           ? b_ir_.MatmulSum(left, right)
                          : Pick(3) == 0 ? OfHalves(left, right)
                                         : b_ir_.Matmul(left, Shared(right));
    values_.push_back(product);
    values_.push_back(b_ir_.Unary(Op::kTanh, b_ir_.Mul(product, b_ir_.Like(product, 0.01))));
  }

  // With a bias at times: a row of what is multiplied, or a part of one.
  Value OfHalves(Value x, Value y) {
    const DType half = Pick(2) != 0 ? DType::kBF16 : DType::kF16;
    const Value left = b_ir_.Cast(x, half), right = b_ir_.Cast(y, half);
    if (b_ir_.rank(x) == 3 || Pick(2) == 0) return b_ir_.Cast(b_ir_.Matmul(left, Shared(right)), DType::kF32);
    const Extent one = Extent::Constant(1), columns = b_ir_.dims(right)[1];
    const Value row = b_ir_.Slice(right, {2, Extent::Constant(0)}, {one, columns}, {1, 1});
    return b_ir_.Cast(b_ir_.MatmulBias(left, right, b_ir_.Reshape(row, {columns})), DType::kF32);
  }

  // Of a batch, sometimes the first one for all.
  Value Shared(Value x) {
    const ir::Dims dims = b_ir_.dims(x);
    if (dims.size() != 3 || Pick(2) == 0) return x;
    ir::Dims one = dims;
    one[0] = Extent::Constant(1);
    return b_ir_.Expand(b_ir_.Slice(x, {3, Extent::Constant(0)}, one, {1, 1, 1}), dims);
  }

  // Parts whose dims no index map can split: [a, b] as [b, a].
  void ConcatReshaped(Value x) {
    if (b_ir_.dims(x) != ir::Dims{a_, b_}) return;
    const Value turned = b_ir_.Reshape(x, {b_, a_});
    const Value parts[] = {turned, Pick(2) == 0 ? turned : b_ir_.Permute(Like(x), {1, 0})};
    values_.push_back(b_ir_.Permute(b_ir_.Concat(parts, 1, twice_a_), {1, 0}));
  }

  // A value of x's rank and more: x, others of its type, perhaps again, on top of each other.
  void Stack(Value x) {
    if (b_ir_.rank(x) > 2) return;
    const Value parts[] = {x, Like(x), Pick(4) == 0 ? x : Like(x)};
    Value whole = b_ir_.Stack(parts, Pick(b_ir_.rank(x) + 1));
    if (Pick(2) == 0) whole = b_ir_.Unary(Op::kNeg, whole);
    values_.push_back(whole);
    values_.push_back(b_ir_.Reduce(Op::kSum, whole, {Pick(b_ir_.rank(whole))}, /*keepdim=*/false));
  }

  // Gives 2 a + b and a - b, the first perhaps in the place of a, and b perhaps a itself.
  void Call(Value x) {
    const int64_t record = calls_++;
    const int64_t inout = Pick(2) - 1;
    const Value y = Pick(4) == 0 ? x : Like(x);
    for (const Value result : b_ir_.Call("mix", record, {x, y}, {b_ir_.type(x), b_ir_.type(x)}, {inout, -1})) {
      values_.push_back(result);
    }
  }

  std::mt19937 random_;
  int64_t calls_ = 0;
  ir::Builder b_ir_{"fuzz"};
  std::vector<Value> values_;
  const Extent a_ = Extent::Symbol(0), b_ = Extent::Symbol(1), c_ = Extent::Symbol(2), ab_ = Extent::Symbol(3),
               twice_a_ = Extent::Symbol(4);
};

absl::StatusOr<std::vector<ir::HostValue>> Mix(const ir::Node&, absl::Span<const ir::HostValue> operands) {
  std::vector<ir::HostValue> results = {operands[0], operands[0]};
  for (size_t k = 0; k < operands[0].floats.size(); ++k) {
    const float a = static_cast<float>(operands[0].floats[k]), b = static_cast<float>(operands[1].floats[k]);
    results[0].floats[k] = 2 * a + b;
    results[1].floats[k] = a - b;
  }
  return results;
}

class Fuzz : public testing::TestWithParam<uint32_t> {};

TEST_P(Fuzz, CompiledAsEvaluated) {
  const ir::Graph graph = GraphMaker(GetParam()).Make();
  const std::vector<std::vector<int64_t>> sizes = {{3, 5, 4, 15, 6}, {33, 70, 2, 2310, 66}, {1, 1, 1, 1, 2}};
  const Tolerance tolerance = {2e-5, 2e-4};
  CheckGraph(graph, sizes, tolerance, GetParam(), Mix);
  // One long dim: GPUs reduce it in shares.
  CheckGraphFor({1 << 20, 4, 2, 4 << 20, 2 << 20}, graph, sizes, tolerance, GetParam(), Mix);
  CheckGraphFor({2, 1 << 20, 2, 2 << 20, 4}, graph, sizes, tolerance, GetParam(), Mix);
  // Odd and large: products of 16-bit floats are padded there.
  CheckGraphFor({4001, 3003, 2001, 4001 * 3003, 8002}, graph, sizes, tolerance, GetParam(), Mix);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Fuzz, testing::Range(0u, 60u));

}  // namespace
}  // namespace torch_lazy::codegen
