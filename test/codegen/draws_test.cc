// SPDX-License-Identifier: Apache-2.0
// Random numbers in kernels, against those that a launch on a GPU draws (test/ir/philox_test.cc).
#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/decompose/dropout.h"
#include "ir/philox.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;
using ir::Value;

constexpr int64_t kThreshold = int64_t{3} << 30;  // three of four are kept
constexpr int64_t kSeed = 0x7edcba9876543211;     // more than a double holds

// Which elements of [s0, s1] are kept, drawn in the order of `order`, and what `use` makes of
// these.
template <typename Use>
ir::Graph Draws(int64_t width, const ir::Ints& order, Use use) {
  ir::Builder b;
  const ir::Dims dims = {ir::Extent::Symbol(0), ir::Extent::Symbol(1)};
  const Value x = b.Param({DType::kF32, dims});
  ir::decompose::Draw draw;
  for (Value* number : {&draw.seed, &draw.offset, &draw.threads, &draw.threshold}) *number = b.Scalar(DType::kI64);
  draw.width = b.Const(DType::kI64, width);
  const Value kept = ir::decompose::KeptElements(b, draw, dims, order, ir::Extent::Symbol(2));
  std::vector<ir::Output> outputs;
  for (const Value result : use(b, x, kept)) outputs.push_back({result});
  return b.Finish(std::move(outputs));
}

std::vector<Value> Mask(ir::Builder& b, Value x, Value kept) { return {b.Mul(x, b.Cast(kept, DType::kF32)), kept}; }

// Without signs: which zero is the largest depends on the order.
Value Sizes(ir::Builder& b, Value x, Value kept) { return b.Unary(ir::Op::kAbs, b.Mul(x, b.Cast(kept, DType::kF32))); }

std::vector<Value> BesideRows(ir::Builder& b, Value x, Value kept) {
  const Value sizes = Sizes(b, x, kept);
  const ir::Dims dims = b.dims(x);
  const Value largest = b.Reduce(ir::Op::kReduceMax, sizes, {1}, /*keepdim=*/true);
  return {b.Sub(sizes, b.Expand(largest, dims)), kept};
}

std::vector<Value> BesideColumns(ir::Builder& b, Value x, Value kept) {
  return {b.Reduce(ir::Op::kReduceMax, Sizes(b, x, kept), {0}, /*keepdim=*/false), kept};
}

std::vector<ir::HostValue> Numbers(const ir::PhiloxLaunch& launch) {
  std::vector<ir::HostValue> numbers;
  for (const int64_t number : {launch.seed, launch.offset, launch.threads, kThreshold})
    numbers.push_back(ir::MakeIntegers(DType::kI64, {}, {number}));
  return numbers;
}

void Check(const ir::Graph& graph, const ir::PhiloxLaunch& launch, const ir::Ints& order, int64_t rows, int64_t columns,
           const std::vector<int64_t>& typical) {
  ir::EvaluateInputs inputs = RandomInputs(graph, {rows, columns, rows * columns}, 1);
  inputs.scalars = Numbers(launch);
  const std::vector<ir::HostValue> expected = *ir::Evaluate(graph, inputs);
  const std::vector<ir::HostValue> actual = RunPlan(graph, *Compile(graph, OptionsFor(typical)), &inputs);
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_TRUE(ir::SameNumbers(actual[k], expected[k]));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t place = order[0] == 0 ? i * columns + j : j * rows + i;
      ASSERT_EQ(actual[1].integers[i * columns + j], ir::PhiloxAt(launch, place) < kThreshold)
          << rows << " x " << columns << ", width " << launch.width << ": " << i << ", " << j;
    }
  }
}

// Sizes of one element, of whole vectors, of rows that begin anywhere, and of several rounds of the
// launch.
template <typename Use>
void CheckUse(Use use) {
  constexpr std::pair<int64_t, int64_t> kSizes[] = {{1, 1}, {6, 128}, {16, 33}, {3, 1024}, {40, 70}};
  for (const ir::Ints& order : {ir::Ints{0, 1}, ir::Ints{1, 0}}) {
    for (const int64_t width : {1, 2, 4, 8}) {
      const ir::Graph graph = Draws(width, order, use);
      for (const auto& [rows, columns] : kSizes) {
        const ir::PhiloxLaunch launch = {kSeed, 12, 48, width};
        Check(graph, launch, order, rows, columns, {});
        Check(graph, launch, order, rows, columns, {rows, columns, rows * columns});
      }
    }
  }
}

// Vectors of these rows begin among numbers that come together.
TEST(Draws, InLongRows) {
  constexpr int64_t kColumns = 50257;
  for (const int64_t width : {2, 4, 8}) {
    const ir::Graph graph = Draws(width, {0, 1}, BesideRows);
    Check(graph, {kSeed, 12, 48, width}, {0, 1}, 2, kColumns, {2, kColumns, 2 * kColumns});
  }
}

// So do those of a mask that is read from its second element on.
TEST(Draws, InPartsOfMasks) {
  constexpr int64_t kCount = 4097;
  for (const int64_t width : {1, 2, 4, 8}) {
    ir::Builder b;
    ir::decompose::Draw draw;
    for (Value* number : {&draw.seed, &draw.offset, &draw.threads, &draw.threshold}) *number = b.Scalar(DType::kI64);
    draw.width = b.Const(DType::kI64, width);
    const Value kept = ir::decompose::KeptElements(b, draw, {ir::Extent::Symbol(0)}, {0}, ir::Extent::Symbol(0));
    const Value part = b.Slice(kept, {ir::Extent::Constant(1)}, {ir::Extent::Symbol(1)}, /*steps=*/{1});
    const ir::Graph graph = b.Finish({{part}});
    const ir::PhiloxLaunch launch = {kSeed, 12, 48, width};
    ir::EvaluateInputs inputs{.params = {}, .scalars = Numbers(launch), .symbols = {kCount, kCount - 1}, .call = {}};
    const std::vector<ir::HostValue> actual = RunPlan(graph, *Compile(graph, OptionsFor({})), &inputs);
    for (int64_t k = 0; k + 1 < kCount; ++k)
      ASSERT_EQ(actual[0].integers[k], ir::PhiloxAt(launch, k + 1) < kThreshold) << width << " " << k;
  }
}

TEST(Draws, InMaps) { CheckUse(Mask); }
TEST(Draws, InRows) { CheckUse(BesideRows); }
TEST(Draws, InColumns) { CheckUse(BesideColumns); }

}  // namespace
}  // namespace torch_lazy::codegen
