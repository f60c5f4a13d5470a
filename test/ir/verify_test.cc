// SPDX-License-Identifier: Apache-2.0
// Each rule of the verifier has a line that breaks it.
#include "ir/verify.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/parse.h"

namespace torch_lazy::ir {
namespace {

struct BadNode {
  const char* line;
  const char* error;
};
class VerifyErrors : public testing::TestWithParam<BadNode> {};

TEST_P(VerifyErrors, SayWhatDoesNotFit) {
  const absl::StatusOr<Graph> graph =
      Parse(absl::StrCat("graph @g(%x: f32[4, s0], %h: f16[4], %i: i64[4], %b: bool[4], %n: f32[2, 3], $c: f64[]) {\n",
                         GetParam().line, "\n return }"));
  EXPECT_THAT(std::string(graph.status().message()), testing::HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    All, VerifyErrors,
    testing::Values(
        BadNode{"%0 = const {value=1} : f32[4]", "const: rank must be 0, not f32[4]"},
        BadNode{"%0 = iota {dim=1} : i64[4]", "iota: dim 1 is out of range for i64[4]"},
        BadNode{"%0 = extent {extent=s0} : i32[]", "extent: must be i64, not i32[]"},
        BadNode{"%0 = add %h, %h : f16[4]", "add: does not compute in f16"},
        BadNode{"%0 = exp %i : i64[4]", "exp: does not compute in i64"},
        BadNode{"%0 = neg %b : bool[4]", "neg: does not compute in bool"},
        BadNode{"%0 = add %i, %b : i64[4]", "add: operand 1 is bool[4], not i64"},
        BadNode{"%0 = add %i : i64[4]", "add: 2 operands are needed, not 1"},
        BadNode{"%0 = lt %i, %i : i64[4]", "lt: gives bool, not i64"},
        BadNode{"%0 = where %i, %i, %i : i64[4]", "where: operand 0 is i64[4], not bool"},
        BadNode{"%0 = reshape %n : f32[5]", "reshape: 6 elements do not fit f32[5]"},
        BadNode{"%0 = reshape %n : f64[6]", "reshape: makes f64 of f32[2, 3]"},
        BadNode{"%0 = permute %n {dims=[0, 0]} : f32[2, 3]", "permute: dims are no permutation of 2 dims"},
        BadNode{"%0 = permute %n {dims=[1, 0]} : f32[2, 3]", "permute: dim 0 of f32[2, 3] is not dim 1 of f32[2, 3]"},
        BadNode{"%0 = expand %n : f32[2, 6]", "expand: f32[2, 3] does not broadcast to f32[2, 6]"},
        BadNode{"%0 = expand %i : i64[1, 4]", "expand: i64[4] does not broadcast to i64[1, 4]"},
        BadNode{"%0 = slice %n {starts=[0, 1], steps=[1, 1]} : f32[2, 3]",
                "slice: elements 1 to 3 of dim 1 are not in f32[2, 3]"},
        BadNode{"%0 = slice %n {starts=[0], steps=[1]} : f32[2]", "slice: 1 starts and 1 steps"},
        BadNode{"%0 = slice %n {starts=[0, 0], steps=[1, 0]} : f32[2, 3]", "slice: step 0 in dim 1"},
        BadNode{"%0 = sum %n {dims=[2], keepdim=false} : f32[2]", "sum: dim 2 is out of range for f32[2, 3]"},
        BadNode{"%0 = sum %n {dims=[1, 0], keepdim=false} : f32[]", "sum: dims are not in ascending order"},
        BadNode{"%0 = sum %n {dims=[], keepdim=false} : f32[2, 3]", "sum: over 0 dims"},
        BadNode{"%0 = sum %n {dims=[1], keepdim=false} : f32[3]", "sum: gives f32[2], not f32[3]"},
        BadNode{"%0 = sum %h {dims=[0], keepdim=false} : f16[]", "sum: does not compute in f16"},
        BadNode{"%0 = argmax %n {dims=[0, 1], keepdim=false} : i64[]", "argmax: over 2 dims"},
        BadNode{"%0 = take %n, %i {dim=0} : f32[4]", "take: f32[2, 3] along dim 0 does not give f32[4]"},
        BadNode{"%0 = put %n, %n, %i {dim=0} : f32[2, 3]", "put: the index is i64[4], the rows f32[2, 3]"},
        BadNode{"%0 = put %n, %i, %i {dim=0} : f32[2, 3]", "put: i64[4] along dim 0 do not fit f32[2, 3]"},
        BadNode{"%0 = put %n, %n, %i {dim=2} : f32[2, 3]", "put: dim 2 is out of range for f32[2, 3]"},
        BadNode{"%0 = put %n, %n, %i {dim=0} : f32[4, 3]", "put: makes f32[4, 3] of f32[2, 3]"},
        BadNode{"%0 = take %i, %b {dim=0} : i64[4]", "take: the index is bool[4], the result i64[4]"},
        BadNode{"%0 = cast %n : bf16[2, 3] %1 = permute %n {dims=[1, 0]} : f32[3, 2] %2 = matmul %0, %1 : bf16[2, 2]",
                "matmul: bf16[2, 3] by f32[3, 2] does not give bf16[2, 2]"},
        BadNode{"%0 = cast %n : bf16[2, 3] %1 = permute %0 {dims=[1, 0]} : bf16[3, 2] %2 = matmul %0, %1 : f32[2, 2]",
                "matmul: bf16[2, 3] by bf16[3, 2] does not give f32[2, 2]"},
        BadNode{
            "%0 = cast %n : f16[2, 3] %1 = reshape %0 : f16[1, 2, 3] %2 = permute %1 {dims=[0, 2, 1]} : f16[1, 3, 2] "
            "%3 = matmul_sum %1, %2 : f16[2, 2]",
            "matmul_sum: f16[1, 2, 3] by f16[1, 3, 2] does not give f16[2, 2]"},
        BadNode{"%0 = cast %n : f16[2, 3] %1 = permute %0 {dims=[1, 0]} : f16[3, 2] %2 = matmul_bias %0, %1, %0 : "
                "f16[2, 2]",
                "matmul_bias: the bias is f16[2, 3], the result f16[2, 2]"},
        BadNode{"%0 = permute %n {dims=[1, 0]} : f32[3, 2] %1 = sum %n {dims=[1], keepdim=false} : f32[2] "
                "%2 = matmul_bias %n, %n, %1 : f32[2, 2]",
                "matmul_bias: f32[2, 3] by f32[2, 3] does not give f32[2, 2]"},
        BadNode{"%0 = reshape %n : f32[1, 2, 3] %1 = permute %0 {dims=[0, 2, 1]} : f32[1, 3, 2] "
                "%2 = sum %n {dims=[1], keepdim=false} : f32[2] %3 = matmul_bias %0, %1, %2 : f32[1, 2, 2]",
                "matmul_bias: gives f32[1, 2, 2], which is no matrix"},
        BadNode{"%0 = cast %n : f16[2, 3] %1 = permute %0 {dims=[1, 0]} : f16[3, 2] %2 = matmul_bias_relu %0, %1, %0 : "
                "f16[2, 2]",
                "matmul_bias_relu: the bias is f16[2, 3], the result f16[2, 2]"},
        BadNode{"%0 = call %i {callee=\"f\", index=0, inout=[1], may_fail=false} : i64[4]",
                "call: there is no operand 1"},
        BadNode{"%0 = result %i {index=1} : i64[4]", "result: its operand is no call"},
        BadNode{"%0 = call %i {callee=\"f\", index=0, inout=[-1], may_fail=false} : i64[4]\n%1 = result %0 "
                "{index=1} : i64[4]",
                "result: index 1 of a call with 1 results"},
        BadNode{"%0 = call %i {callee=\"f\", index=0, inout=[], may_fail=false} : bool[4]\n%1 = not %0 : bool[4]",
                "not: uses a call without results"},
        BadNode{"return %x -> %n, %n -> %n } graph @h() {", "return: the buffer of parameter 4 is taken twice"}));

TEST(Verify, FindsWhatTheParserCannotWrite) {
  Graph graph = *Parse("graph @g(%x: f32[4]) { %0 = neg %x : f32[4] return %0 }");
  graph.nodes[1].inputs[0] = 1;
  EXPECT_EQ(Verify(graph).message(), "neg: operand 1 does not stand before node 1");
  std::swap(graph.nodes[0], graph.nodes[1]);
  EXPECT_EQ(Verify(graph).message(), "param: stands behind other nodes");
  graph = *Parse("graph @g(%x: f32[4]) { return %x }");
  graph.outputs[0].value = 5;
  EXPECT_EQ(Verify(graph).message(), "return: there is no node 5");
  graph.nodes[0].attrs.index = 1;
  EXPECT_EQ(Verify(graph).message(), "param: index 1 in place of 0");
}

// Products of symbols cannot be compared, so such a reshape is taken as it is.
TEST(Verify, TrustsReshapesOfSymbols) {
  EXPECT_TRUE(Parse("graph @g(%x: f32[s0, s1]) { %0 = reshape %x : f32[s2] return %0 }").ok());
}

}  // namespace
}  // namespace torch_lazy::ir
