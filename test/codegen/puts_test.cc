// SPDX-License-Identifier: Apache-2.0
// Rows that are put in their places by an index: where they are stored, and in how many kernels.
#include "absl/strings/str_cat.h"
#include "backends/registry.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

// s3 places, 0, 1, ... times 5 plus 3 around s1: each once, since 5 does not divide s1.
constexpr absl::string_view kPlaces = R"(
  %i = iota {dim=0} : i64[s3]
  %five = const {value=5} : i64[]
  %f = reshape %five : i64[1]
  %ff = expand %f : i64[s3]
  %t = mul %i, %ff : i64[s3]
  %three = const {value=3} : i64[]
  %h = reshape %three : i64[1]
  %hh = expand %h : i64[s3]
  %p = add %t, %hh : i64[s3]
  %n = extent {extent=s1} : i64[]
  %m = reshape %n : i64[1]
  %mm = expand %m : i64[s3]
  %at = remainder %p, %mm : i64[s3]
)";

// The last is s1 + s3.
const std::vector<std::vector<int64_t>> kSizes = {{2, 7, 8, 3, 10}, {1, 9, 5, 1, 10}, {3, 33, 64, 31, 64},
                                                  {4, 2, 1, 1, 3},  {2, 7, 8, 0, 7},  {5, 1001, 72, 17, 1018}};

int NumLaunches(const Plan& plan) {
  int launches = 0;
  for (const Step& step : plan.steps) launches += step.kind == Step::Kind::kLaunch;
  return launches;
}

void Check(const std::string& text) {
  CheckText(text, kSizes);
  CheckTextFor({8, 48, 64, 16, 64}, text, kSizes);
}

TEST(Puts, AreMadeWhereTheyAreStored) {
  const std::string text = absl::StrCat("graph @g(%x: f32[s0, s1, s2], %r: f32[s0, s3, s2]) {", kPlaces, R"(
    %0 = neg %r : f32[s0, s3, s2]
    %1 = put %x, %0, %at {dim=1} : f32[s0, s1, s2]
    return %1 -> %x
  })");
  EXPECT_EQ(PlanOf(text).steps.size(), 2);  // the places are a kernel of their own
  Check(text);
}

TEST(Puts, AlongEachDim) {
  Check(absl::StrCat("graph @first(%x: bf16[s1, s0], %r: bf16[s3, s0]) {", kPlaces, R"(
    %0 = put %x, %r, %at {dim=0} : bf16[s1, s0]
    return %0 -> %x
  })"));
  Check(absl::StrCat("graph @last(%x: i64[s0, s1], %r: i64[s0, s3]) {", kPlaces, R"(
    %0 = put %x, %r, %at {dim=1} : i64[s0, s1]
    return %0 -> %x
  })"));
}

// A copy, or what was computed, is written anew; what others read is not.
TEST(Puts, LeaveWhatOthersRead) {
  Check(absl::StrCat("graph @copy(%x: f32[s1, s0], %r: f32[s3, s0]) {", kPlaces, R"(
    %0 = put %x, %r, %at {dim=0} : f32[s1, s0]
    %1 = neg %x : f32[s1, s0]
    return %0, %1
  })"));
  const std::string computed = absl::StrCat("graph @computed(%x: f32[s1, s0], %r: f32[s3, s0]) {", kPlaces, R"(
    %0 = neg %x : f32[s1, s0]
    %1 = put %0, %r, %at {dim=0} : f32[s1, s0]
    %2 = abs %1 : f32[s1, s0]
    return %1, %2
  })");
  EXPECT_EQ(NumLaunches(PlanOf(computed)), 3);
  Check(computed);
  Check(absl::StrCat("graph @both(%x: f32[s1, s0], %r: f32[s3, s0]) {", kPlaces, R"(
    %0 = neg %x : f32[s1, s0]
    %1 = put %0, %r, %at {dim=0} : f32[s1, s0]
    %2 = sub %1, %0 : f32[s1, s0]
    return %2
  })"));
}

// The rows come from the tensor itself.
TEST(Puts, OfItsOwnRows) {
  Check(absl::StrCat("graph @own(%x: f32[s1, s0]) {", kPlaces, R"(
    %0 = slice %x {starts=[0, 0], steps=[1, 1]} : f32[s3, s0]
    %1 = neg %0 : f32[s3, s0]
    %2 = put %x, %1, %at {dim=0} : f32[s1, s0]
    return %2 -> %x
  })"));
}

TEST(Puts, OneOnTopOfTheOther) {
  Check(absl::StrCat("graph @again(%x: f32[s1, s0], %r: f32[s3, s0], %q: f32[1, s0], %u: f32[1, s0]) {", kPlaces, R"(
    %0 = put %x, %r, %at {dim=0} : f32[s1, s0]
    %z = const {value=0} : i64[]
    %zz = reshape %z : i64[1]
    %1 = put %0, %q, %zz {dim=0} : f32[s1, s0]
    %2 = put %1, %u, %zz {dim=0} : f32[s1, s0]
    return %2 -> %x
  })"));
}

// Two results of one tensor cannot both lie in its memory.
TEST(Puts, TwiceIntoOne) {
  Check(absl::StrCat("graph @twice(%x: f32[s1, s0], %r: f32[s3, s0], %q: f32[s3, s0]) {", kPlaces, R"(
    %0 = neg %x : f32[s1, s0]
    %1 = put %0, %r, %at {dim=0} : f32[s1, s0]
    %2 = put %0, %q, %at {dim=0} : f32[s1, s0]
    %3 = sub %1, %2 : f32[s1, s0]
    %4 = neg %1 : f32[s1, s0]
    return %3, %4
  })"));
  Check(absl::StrCat("graph @param(%x: f32[s1, s0], %r: f32[s3, s0], %q: f32[s3, s0]) {", kPlaces, R"(
    %1 = put %x, %r, %at {dim=0} : f32[s1, s0]
    %2 = put %x, %q, %at {dim=0} : f32[s1, s0]
    return %1 -> %x, %2
  })"));
}

TEST(Puts, OfSums) {
  Check(
      absl::StrCat("graph @sums(%x: f32[s0, s1], %y: f32[s0, s1], %r: f32[s0, s3, s2], %w: f32[s0, s3]) {", kPlaces, R"(
    %0 = reduce_max %r {dims=[2], keepdim=false} : f32[s0, s3]
    %1 = put %x, %0, %at {dim=1} : f32[s0, s1]
    %2 = add %0, %w : f32[s0, s3]
    %3 = put %y, %2, %at {dim=1} : f32[s0, s1]
    return %1 -> %x, %3 -> %y
  })"));
  Check(absl::StrCat("graph @sum(%x: f32[s0, s1], %r: f32[s0, s3, s2]) {", kPlaces, R"(
    %0 = reduce_max %r {dims=[2], keepdim=false} : f32[s0, s3]
    %1 = put %x, %0, %at {dim=1} : f32[s0, s1]
    return %1 -> %x
  })"));
  Check(absl::StrCat("graph @rows(%x: f32[s0, s1], %r: f32[s0, s3]) {", kPlaces, R"(
    %0 = reduce_max %r {dims=[1], keepdim=true} : f32[s0, 1]
    %1 = expand %0 : f32[s0, s3]
    %2 = sub %r, %1 : f32[s0, s3]
    %3 = put %x, %2, %at {dim=1} : f32[s0, s1]
    return %3 -> %x
  })"));
}

TEST(Puts, IntoAPartOfAConcat) {
  Check(absl::StrCat("graph @concat(%x: f32[s1, s0], %r: f32[s3, s0]) {", kPlaces, R"(
    %0 = put %x, %r, %at {dim=0} : f32[s1, s0]
    %1 = concat %0, %r {dim=0} : f32[s4, s0]
    return %1
  })"));
}

TEST(PutsDeathTest, TrapOutOfRange) {
  constexpr absl::string_view text = R"(graph @g(%x: f32[4], %r: f32[1], %i: i64[1]) {
    %0 = put %x, %r, %i {dim=0} : f32[4]
    return %0 -> %x
  })";
  const ir::Graph graph = *ir::Parse(text);
  for (const int64_t index : {4, -1}) {
    ir::EvaluateInputs inputs = RandomInputs(graph, {}, 1);
    inputs.params[2].integers = {index};
    EXPECT_DEATH(RunPlan(graph, PlanOf(text), &inputs), "");
  }
}

}  // namespace
}  // namespace torch_lazy::codegen
