// SPDX-License-Identifier: Apache-2.0
// Variances of columns, in the mean's walk: one kernel reads the rows, and one makes mean and variance.
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

const std::vector<int64_t> kTypical = {100000, 64};
const std::vector<std::vector<int64_t>> kSizes = {{0, 64}, {1, 64}, {259, 64}, {3001, 40}};

// Of %x, made of %p; MEAN is what is taken off.
constexpr char kVariance[] = R"(graph @g(%p: f32[s0, s1]) {
  MAKE
  %2 = extent {extent=s0} : i64[]
  %3 = cast %2 : f32[]
  %4 = reshape %3 : f32[1, 1]
  %5 = expand %4 : f32[1, s1]
  %6 = sum %x {dims=[0], keepdim=true} : f32[1, s1]
  %7 = div %6, %5 : f32[1, s1]
  %8 = MEAN : f32[1, s1]
  %9 = expand %8 : f32[s0, s1]
  %10 = sub %x, %9 : f32[s0, s1]
  %11 = mul %10, %10 : f32[s0, s1]
  %12 = sum %11 {dims=[0], keepdim=true} : f32[1, s1]
  %13 = div %12, %5 : f32[1, s1]
  return %7, %13
})";
constexpr char kPlain[] = "%x = neg %p : f32[s0, s1]";

std::string Text(const char* make, const char* mean = "reshape %7") {
  return absl::StrReplaceAll(kVariance, {{"MAKE", make}, {"MEAN", mean}});
}

// Kernels that read the parameter as a whole.
size_t Walks(const std::string& text) {
  const Plan plan = PlanOf(text, kTypical);
  size_t walks = 0;
  for (const Step& step : plan.steps) {
    for (const Instance& instance : step.instances)
      walks += instance.range.size() == 1 && instance.range[0].is_constant() ? 1 : 0;
  }
  return walks;
}

TEST(Variance, IsMadeInOneWalk) {
  CheckTextFor(kTypical, Text(kPlain), kSizes, {1e-5, 1e-6});
  EXPECT_EQ(Walks(Text(kPlain)), 1u);
}

TEST(Variance, AroundAnotherNumberTakesTwo) {
  CheckTextFor(kTypical, Text(kPlain, "exp %7"), kSizes, {1e-5, 1e-6});
  EXPECT_EQ(Walks(Text(kPlain, "exp %7")), 2u);
}

TEST(Variance, OfDoublesTakesTwo) {
  const std::string text = absl::StrReplaceAll(Text(kPlain), {{"f32", "f64"}});
  CheckTextFor(kTypical, text, kSizes, {1e-12, 1e-12});
}

TEST(Variance, OfNumbersFarFromZero) {
  CheckTextFor(kTypical, Text(R"(%0 = const {value=10000} : f32[]
  %1a = reshape %0 : f32[1, 1]
  %1 = expand %1a : f32[s0, s1]
  %x = add %p, %1 : f32[s0, s1])"),
               {{259, 64}, {3001, 40}}, {1e-4, 0});
}

TEST(Variance, WhereTheFirstRowIsFarFromTheOthers) {
  CheckTextFor(kTypical, Text(R"(%0 = iota {dim=0} : f32[s0, s1]
  %1a = const {value=1} : f32[]
  %1b = reshape %1a : f32[1, 1]
  %1c = expand %1b : f32[s0, s1]
  %1d = lt %0, %1c : bool[s0, s1]
  %1e = const {value=1000} : f32[]
  %1f = reshape %1e : f32[1, 1]
  %1g = expand %1f : f32[s0, s1]
  %1h = add %p, %1g : f32[s0, s1]
  %x = where %1d, %1h, %p : f32[s0, s1])"),
               {{259, 64}, {3001, 40}}, {1e-5, 0});
}

TEST(Variance, OfEqualNumbersIsZero) {
  CheckTextFor(kTypical, Text(R"(%0 = const {value=0.1} : f32[]
  %1a = reshape %0 : f32[1, 1]
  %x = expand %1a : f32[s0, s1])"),
               kSizes, {1e-5, 1e-12});
}

}  // namespace
}  // namespace torch_lazy::codegen
