// SPDX-License-Identifier: Apache-2.0
#include "ir/evaluate.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/ir/outputs.h"

namespace torch_lazy::ir {
namespace {

using testing::ElementsAre;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

double Binary(absl::string_view op, absl::string_view dtype, double a, double b) {
  const std::string type = absl::StrCat(dtype, "[]");
  const std::string text =
      absl::StrCat("graph @g(%a: ", type, ", %b: ", type, ") { %0 = ", op, " %a, %b : ", type, " return %0 }");
  DType d = DType::kF32;
  EXPECT_TRUE(ParseDType(dtype, &d));
  if (IsFloat(d)) return OutputsOf(text, {MakeFloats(d, {}, {a}), MakeFloats(d, {}, {b})})[0].floats[0];
  const int64_t ia = static_cast<int64_t>(a), ib = static_cast<int64_t>(b);
  return static_cast<double>(OutputsOf(text, {MakeIntegers(d, {}, {ia}), MakeIntegers(d, {}, {ib})})[0].integers[0]);
}

TEST(Evaluate, DividesAsATen) {
  EXPECT_EQ(Binary("floor_div", "f32", -7, 2), -4);
  EXPECT_EQ(Binary("floor_div", "i64", -7, 2), -4);
  EXPECT_EQ(Binary("floor_div", "f32", 1, 0.1f), 9);  // 1 / 0.1f rounds to 10, which is too much
  EXPECT_EQ(Binary("floor_div", "f64", 1, 0), kInf);
  EXPECT_EQ(Binary("trunc_div", "i64", -7, 2), -3);
  EXPECT_EQ(Binary("trunc_div", "f32", -7, 2), -3);
  EXPECT_EQ(Binary("fmod", "f32", -7, 4), -3);
  EXPECT_EQ(Binary("remainder", "f32", -7, 4), 1);
  EXPECT_EQ(Binary("remainder", "i32", 7, -4), -1);
  EXPECT_EQ(Binary("fmod", "i32", -7, 4), -3);
}

TEST(Evaluate, WrapsIntegers) {
  EXPECT_EQ(Binary("add", "u8", 200, 100), 44);
  EXPECT_EQ(Binary("mul", "i8", 100, 3), 44);
  EXPECT_EQ(Binary("pow", "i64", 3, 5), 243);
  EXPECT_EQ(Binary("pow", "i64", 2, -1), 0);
  EXPECT_EQ(Binary("add", "bool", 1, 1), 1);
}

TEST(Evaluate, LetsNaNWinMaxAndMin) {
  for (const char* op : {"max", "min"}) {
    EXPECT_TRUE(std::isnan(Binary(op, "f32", kNan, 1)));
    EXPECT_TRUE(std::isnan(Binary(op, "f32", 1, kNan)));
  }
  EXPECT_EQ(Binary("max", "f32", -1, 2), 2);
  EXPECT_EQ(Binary("min", "f32", -1, 2), -1);
}

TEST(Evaluate, RoundsEachNode) {
  // 2^24 + 1 does not fit f32: two additions lose what one of 2 keeps.
  EXPECT_EQ(OutputsOf("graph @g(%x: f32[]) { %1 = const {value=1} : f32[] %2 = add %x, %1 : f32[] "
                      "%3 = add %2, %1 : f32[] "
                      "return %3 }",
                      {F32({}, {16777216})})[0]
                .floats[0],
            16777216);
  // a * b + c with one rounding.
  const double a = 1 + 0x1p-12, rounded_product = 1 + 0x1p-11;
  EXPECT_EQ(OutputsOf("graph @g(%a: f32[], %c: f32[]) { %0 = fma %a, %a, %c : f32[] return %0 }",
                      {F32({}, {a}), F32({}, {-rounded_product})})[0]
                .floats[0],
            0x1p-24);
}

TEST(Evaluate, CastsAsEager) {
  const std::vector<HostValue> out = OutputsOf(
      "graph @g(%x: f64[3], %i: i64[1]) { %0 = cast %x : i32[3] %1 = cast %x : bool[3] %2 = cast "
      "%x : f16[3] "
      "%3 = cast %i : f32[1] return %0, %1, %2, %3 }",
      {F64({3}, {-1.5, kNan, 2049}), I64({1}, {(int64_t{1} << 60) + (int64_t{1} << 36) + 1})});
  EXPECT_THAT(out[0].integers, ElementsAre(-1, std::numeric_limits<int32_t>::min(), 2049));
  EXPECT_THAT(out[1].integers, ElementsAre(1, 1, 1));
  EXPECT_EQ(out[2].floats[2], 2048);
  EXPECT_EQ(out[3].floats[0], 0x1p60 + 0x1p37);  // by way of f64 it would be a tie, and go down
}

TEST(Evaluate, FollowsViews) {
  const HostValue x = F32({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(
      OutputsOf("graph @g(%x: f32[s0, s1]) { %0 = permute %x {dims=[1, 0]} : f32[s1, s0] return %0 }", {x}, {2, 3})[0]
          .floats,
      ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(OutputsOf("graph @g(%x: f32[2, 3]) { %0 = slice %x {starts=[1, s0], steps=[1, -2]} : "
                        "f32[1, 2] return %0 }",
                        {x}, {2})[0]
                  .floats,
              ElementsAre(5, 3));
  EXPECT_THAT(OutputsOf("graph @g(%x: f32[2, 3]) { %0 = reshape %x : f32[2, 1, 3] %1 = expand %0 : "
                        "f32[2, 2, 3] return %1 }",
                        {x})[0]
                  .floats,
              ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5));
  EXPECT_THAT(OutputsOf("graph @g() { %0 = iota {dim=1} : i64[2, 3] return %0 }", {})[0].integers,
              ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Evaluate, Reduces) {
  const HostValue x = F32({2, 3}, {3, -1, 3, 0, 4, kNan});
  auto reduce = [&](absl::string_view op, absl::string_view dims, absl::string_view type) {
    return OutputsOf(absl::StrCat("graph @g(%x: f32[2, 3]) { %0 = ", op, " %x {dims=[", dims,
                                  "], keepdim=false} : ", type, " return %0 }"),
                     {x})[0];
  };
  EXPECT_EQ(reduce("sum", "1", "f32[2]").floats[0], 5);
  EXPECT_THAT(reduce("prod", "0", "f32[3]").floats, ElementsAre(0, -4, testing::IsNan()));
  EXPECT_EQ(reduce("reduce_max", "1", "f32[2]").floats[0], 3);
  EXPECT_TRUE(std::isnan(reduce("reduce_max", "1", "f32[2]").floats[1]));
  EXPECT_THAT(reduce("reduce_max_number", "1", "f32[2]").floats, ElementsAre(3, 4));
  EXPECT_TRUE(std::isnan(reduce("reduce_min", "0, 1", "f32[]").floats[0]));
  EXPECT_THAT(reduce("argmax", "1", "i64[2]").integers, ElementsAre(0, 2));
  EXPECT_THAT(reduce("argmin", "0", "i64[3]").integers, ElementsAre(1, 0, 1));
}

TEST(Evaluate, SumsShares) {
  HostValue x = MakeHostValue(DType::kF32, {100, 2});
  for (int k = 0; k < 200; ++k) x.floats[k] = k;
  const HostValue sums =
      OutputsOf("graph @g(%x: f32[100, 2]) { %0 = share_sum %x {dims=[0]} : f64[64, 2] return %0 }", {x})[0];
  ASSERT_EQ(sums.num_elements(), 128);
  EXPECT_EQ(sums.floats[0], 0);                      // row 0
  EXPECT_EQ(sums.floats[3], 1 * 2 + 1 + 2 * 2 + 1);  // rows 1 and 2
  EXPECT_EQ(sums.floats[2 * 63], 98 * 2 + 99 * 2);
  double all = 0;
  for (int share = 0; share < 64; ++share) all += sums.floats[2 * share];
  EXPECT_EQ(all, 99 * 100);
}

TEST(Evaluate, SumsSharesOfRows) {
  HostValue x = MakeHostValue(DType::kF32, {2, 10});
  for (int k = 0; k < 20; ++k) x.floats[k] = k;
  const HostValue sums =
      OutputsOf("graph @g(%x: f32[2, 10]) { %0 = share_sum %x {dims=[1]} : f64[3, 2] return %0 }", {x})[0];
  EXPECT_THAT(sums.floats,
              ElementsAre(0 + 1 + 2, 10 + 11 + 12, 3 + 4 + 5, 13 + 14 + 15, 6 + 7 + 8 + 9, 16 + 17 + 18 + 19));
}

TEST(Evaluate, ReducesNothing) {
  const std::vector<HostValue> out = OutputsOf(
      "graph @g(%x: f32[0], %i: i8[0], %b: bool[0]) { %0 = sum %x {dims=[0], keepdim=false} : "
      "f32[] "
      "%1 = reduce_max %x {dims=[0], keepdim=false} : f32[] %2 = reduce_min %i {dims=[0], "
      "keepdim=false} : i8[] "
      "%3 = all %b {dims=[0], keepdim=false} : bool[] %4 = any %b {dims=[0], keepdim=false} : "
      "bool[] "
      "return %0, %1, %2, %3, %4 }",
      {F32({0}, {}), MakeHostValue(DType::kI8, {0}), MakeHostValue(DType::kBool, {0})});
  EXPECT_EQ(out[0].floats[0], 0);
  EXPECT_EQ(out[1].floats[0], -kInf);
  EXPECT_EQ(out[2].integers[0], 127);
  EXPECT_EQ(out[3].integers[0], 1);
  EXPECT_EQ(out[4].integers[0], 0);
}

constexpr absl::string_view kEmbedding = R"(graph @g(%w: f32[s0, 2], %i: i64[3]) {
  %0 = reshape %i : i64[3, 1]
  %1 = expand %0 : i64[3, 2]
  %2 = take %w, %1 {dim=0} : f32[3, 2]
  return %2
})";

TEST(Evaluate, TakesRows) {
  EXPECT_THAT(OutputsOf(kEmbedding, {F32({2, 2}, {1, 2, 3, 4}), I64({3}, {1, 0, 1})}, {2})[0].floats,
              ElementsAre(3, 4, 1, 2, 3, 4));
}

TEST(Evaluate, RefusesIndicesOutOfRange) {
  const EvaluateInputs inputs{{F32({2, 2}, {1, 2, 3, 4}), I64({3}, {1, 2, 1})}, {}, {2}, nullptr};
  EXPECT_EQ(std::string(Evaluate(*Parse(kEmbedding), inputs).status().message()),
            "take: index 2 is out of range for 2");
}

constexpr absl::string_view kPut = R"(graph @g(%x: f32[2, 3], %r: f32[2, 2], %i: i64[2]) {
  %0 = put %x, %r, %i {dim=1} : f32[2, 3]
  return %0
})";

TEST(Evaluate, PutsRows) {
  const HostValue x = F32({2, 3}, {1, 2, 3, 4, 5, 6}), rows = F32({2, 2}, {7, 8, 9, 10});
  EXPECT_THAT(OutputsOf(kPut, {x, rows, I64({2}, {2, 0})}, {})[0].floats, ElementsAre(8, 2, 7, 10, 5, 9));
  const EvaluateInputs inputs{{x, rows, I64({2}, {0, -1})}, {}, {}, nullptr};
  EXPECT_EQ(std::string(Evaluate(*Parse(kPut), inputs).status().message()), "put: index -1 is out of range for 3");
}

TEST(Evaluate, RefusesInputsThatDoNotFit) {
  const EvaluateInputs inputs{{F32({2, 2}, {1, 2, 3, 4})}, {}, {3}, nullptr};
  EXPECT_EQ(std::string(Evaluate(*Parse(kEmbedding), inputs).status().message()),
            "param 0 is missing or not f32[s0, 2]");
}

TEST(Evaluate, RunsCalls) {
  EvaluateInputs inputs{{F32({2}, {3, 4})}, {}, {}, nullptr};
  inputs.call = [](const Node& call, absl::Span<const HostValue> operands) -> absl::StatusOr<std::vector<HostValue>> {
    EXPECT_EQ(call.attrs.callee, "split");
    return std::vector<HostValue>{F32({}, {operands[0].floats[0]}), F32({}, {operands[0].floats[1]})};
  };
  const auto out = Evaluate(*Parse(R"(graph @g(%x: f32[2]) {
    %0 = call %x {callee="split", index=0, inout=[-1, -1], may_fail=false} : f32[]
    %1 = result %0 {index=1} : f32[]
    %2 = sub %0, %1 : f32[]
    return %2
  })"),
                            inputs);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].floats[0], -1);
}

TEST(HostValue, KeepsNumbersInBytes) {
  for (DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    const HostValue value = MakeIntegers(dtype, {4}, {0, 1, 2, -3});
    std::vector<char> bytes(4 * SizeBytes(dtype));
    ToBytes(value, bytes.data());
    EXPECT_TRUE(SameNumbers(FromBytes(dtype, {4}, bytes.data()), value)) << Name(dtype);
  }
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const HostValue value = MakeFloats(dtype, {6}, {0, -0.0, 0.1, -kInf, kNan, 1e-7});
    std::vector<char> bytes(6 * SizeBytes(dtype));
    ToBytes(value, bytes.data());
    EXPECT_TRUE(SameNumbers(FromBytes(dtype, {6}, bytes.data()), value)) << Name(dtype);
  }
}

}  // namespace
}  // namespace torch_lazy::ir
