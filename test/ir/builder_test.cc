// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include "base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace torch_lazy::ir {
namespace {

constexpr Extent s0 = Extent::Symbol(0), s1 = Extent::Symbol(1);
constexpr Extent Num(int64_t n) { return Extent::Constant(n); }

TEST(Builder, MovesLateParametersToTheFront) {
  Builder b("late");
  const Value x = b.Param({DType::kF32, {s0}});
  const Value y = b.Neg(x);
  const Value w = b.Param({DType::kF32, {s0}});
  const Value lr = b.Scalar(DType::kF64);
  const Value yw = b.Mul(y, w);
  const Value z = b.Mul(yw, b.FullLike(b.Cast(lr, DType::kF32), y));
  const Graph graph = b.Finish({{z, 1}});
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph);
  EXPECT_EQ(Print(graph), R"(graph @late(%p0: f32[s0], %p1: f32[s0], $0: f64[]) {
  %0 = neg %p0 : f32[s0]
  %1 = mul %0, %p1 : f32[s0]
  %2 = cast $0 : f32[]
  %3 = reshape %2 : f32[1]
  %4 = expand %3 : f32[s0]
  %5 = mul %1, %4 : f32[s0]
  return %5 -> %p1
}
)");
}

TEST(Builder, LeavesOutWhatChangesNothing) {
  Builder b;
  const Value x = b.Param({DType::kF32, {s0, Num(4)}});
  EXPECT_EQ(b.Cast(x, DType::kF32), x);
  EXPECT_EQ(b.Reshape(x, {s0, Num(4)}), x);
  EXPECT_EQ(b.Permute(x, {0, 1}), x);
  EXPECT_EQ(b.BroadcastTo(x, {s0, Num(4)}), x);
  EXPECT_EQ(b.Slice(x, {Num(0), Num(0)}, {s0, Num(4)}, {1, 1}), x);
  EXPECT_EQ(b.Sum(x, {}, false), x);
}

TEST(Builder, CountsElementsOfSymbols) {
  Builder b("count");
  b.Count({s0, Num(3), s1, Num(2)}, DType::kF32);
  b.Count({Num(3), Num(2)}, DType::kF32);
  EXPECT_EQ(Print(b.Finish({})), R"(graph @count() {
  %0 = extent {extent=s0} : i64[]
  %1 = extent {extent=s1} : i64[]
  %2 = mul %0, %1 : i64[]
  %3 = const {value=6} : i64[]
  %4 = mul %2, %3 : i64[]
  %5 = cast %4 : f32[]
  %6 = const {value=6} : f32[]
  return
}
)");
}

// The dims given are those of a node, which moves as the graph grows: for AddressSanitizer.
TEST(Builder, CountsTheDimsOfAValueWhileItGrows) {
  Builder b;
  const Value x = b.Param({DType::kF32, {s0, s1, s0, s1}});
  for (int k = 0; k < 100; ++k) b.Count(b.dims(x), DType::kF32);
  EXPECT_EQ(b.graph().nodes.size(), 1u + 100 * 8);
}

TEST(Builder, ReducesDimsInAnyOrder) {
  Builder b;
  const Value x = b.Param({DType::kF32, {s0, Num(4), s1}});
  EXPECT_EQ(b.type(b.Sum(x, {2, 0}, false)).ToString(), "f32[4]");
  EXPECT_EQ(b.type(b.Sum(x, {2, 0}, true)).ToString(), "f32[1, 4, 1]");
  EXPECT_EQ(b.type(b.Reduce(Op::kArgMax, x, {1}, false)).ToString(), "i64[s0, s1]");
}

TEST(Builder, GivesTheResultsOfACall) {
  Builder b;
  const Value x = b.Param({DType::kF32, {s0}});
  const std::vector<Value> results = b.Call("aten::sort", 3, {x}, {{DType::kF32, {s0}}, {DType::kI64, {s0}}}, {-1, -1});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(b.type(results[0]).ToString(), "f32[s0]");
  EXPECT_EQ(b.type(results[1]).ToString(), "i64[s0]");
  EXPECT_TRUE(b.Call("check", 4, {x}, {}, {}).empty());
}

TEST(Builder, RoundsConstants) {
  Builder b;
  EXPECT_EQ(b.graph().node(b.Const(DType::kF32, 0.1)).attrs.f, 0.1f);
  EXPECT_EQ(b.graph().node(b.Const(DType::kU8, -1)).attrs.i, 255);
  EXPECT_EQ(b.graph().node(b.Const(DType::kI64, 2.7)).attrs.i, 2);
}

TEST(Builder, RefusesOperandsThatDoNotFit) {
  Builder b;
  const Value x = b.Param({DType::kF32, {s0}});
  const Value y = b.Param({DType::kF32, {s1}});
  try {
    b.Add(x, y);
    FAIL();
  } catch (const base::CheckError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("add: operand 1 is f32[s1], the result f32[s0]"));
  }
}

}  // namespace
}  // namespace torch_lazy::ir
