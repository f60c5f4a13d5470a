// SPDX-License-Identifier: Apache-2.0
// Print and Parse are each other's inverse.
#include <limits>

#include "gtest/gtest.h"
#include "ir/builder.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace torch_lazy::ir {
namespace {

constexpr absl::string_view kScaledSum =
    R"(graph @scaled_sum(%p0: f32[s0, 64], %p1: f32[64], $0: f64[]) {
  %0 = reshape %p1 : f32[1, 64]
  %1 = expand %0 : f32[s0, 64]
  %2 = mul %p0, %1 : f32[s0, 64]
  %3 = cast $0 : f32[]
  %4 = sum %2 {dims=[1], keepdim=false} : f32[s0]
  return %4, %2 -> %p0, %3
}
)";

// One node of every attribute.
constexpr absl::string_view kAttributes = R"(graph @attributes(%p0: f32[s0, 8], $0: i64[]) {
  %0 = const {value=0.1} : f32[]
  %1 = const {value=-3} : i32[]
  %2 = const {value=true} : bool[]
  %3 = iota {dim=1} : i64[s0, 4]
  %4 = extent {extent=s1} : i64[]
  %5 = permute %p0 {dims=[1, 0]} : f32[8, s0]
  %6 = slice %p0 {starts=[s2, 7], steps=[2, -1]} : f32[s3, 4]
  %7 = take %p0, %3 {dim=1} : f32[s0, 4]
  %8 = argmax %p0 {dims=[0], keepdim=true} : i64[1, 8]
  %9 = call %p0, %5 {callee="aten::mm \"x\"", index=4, inout=[0, -1], may_fail=false} : f32[s0, 8]
  %10 = result %9 {index=1} : f32[8]
  return %0, %1, %2, %4, %6, %7, %8, %9 -> %p0, %10
}
)";

TEST(Text, CanonicalTextIsAFixedPoint) {
  for (absl::string_view text : {kScaledSum, kAttributes}) {
    const absl::StatusOr<Graph> graph = Parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(Print(*graph), text);
  }
}

TEST(Text, NamesAndCommentsAreFree) {
  const absl::StatusOr<Graph> graph = Parse(R"(
    // Two spellings of one graph.
    graph @scaled_sum(%x: f32[s0, 64], %w: f32[64], $lr: f64) {
      %row = reshape %w : f32[1, 64]   // leading one
      %all = expand %row : f32[s0, 64]
      %y = mul %x, %all : f32[s0, 64]
      %z = cast $lr : f32[]
      %s = sum %y {dims=[1], keepdim=false} : f32[s0]
      return %s, %y -> %x, %z
    })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Print(*graph), kScaledSum);
}

TEST(Text, FloatsReadBackBitForBit) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16}) {
    for (double value : {0.0, -0.0, 0.1, 1e30, 1e-40, 16777217.0, inf, -inf, nan, -nan}) {
      Builder b;
      const Graph graph = b.Finish({{b.Const(dtype, value)}});
      const absl::StatusOr<Graph> read = Parse(Print(graph));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(*read == graph) << Print(graph) << Print(*read);
    }
  }
}

TEST(Text, GraphsWithoutOutputsReadBack) {
  const absl::string_view text =
      "graph @effect(%p0: f32[4]) {\n"
      "  %0 = call %p0 {callee=\"check\", index=1, inout=[], may_fail=false} : bool[]\n"
      "  return\n}\n";
  const absl::StatusOr<Graph> graph = Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Print(*graph), text);
}

struct BadText {
  const char* body;
  const char* error;
};
class TextErrors : public testing::TestWithParam<BadText> {};

TEST_P(TextErrors, NameTheLineAndTheReason) {
  const absl::StatusOr<Graph> graph = Parse(absl::StrCat("graph @g(%x: f32[4]) {\n", GetParam().body, "\n}"));
  EXPECT_EQ(std::string(graph.status().message()), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    All, TextErrors,
    testing::Values(BadText{"  %0 = nag %x : f32[4]\n  return %0", "parse: line 2: there is no op 'nag'"},
                    BadText{"  %0 = neg %y : f32[4]\n  return %0", "parse: line 2: %y is not defined"},
                    BadText{"  %x = neg %x : f32[4]\n  return %x", "parse: line 2: %x is defined twice"},
                    BadText{"  %0 = neg %x : f33[4]\n  return %0", "parse: line 2: there is no dtype 'f33'"},
                    BadText{"  %0 = neg %x {dim=1} : f32[4]\n  return %0", "parse: line 2: neg has no attributes"},
                    BadText{"  %0 = iota : i64[4]\n  return %0", "parse: line 2: expected '{'"},
                    BadText{"  %0 = neg %x : f32[5]\n  return %0",
                            "parse: line 2: neg: operand 0 is f32[4], the result f32[5]"},
                    BadText{"  return %x -> %1", "parse: line 2: %1 is not defined"}));

}  // namespace
}  // namespace torch_lazy::ir
