// SPDX-License-Identifier: Apache-2.0
// Which way an entry runs, and what it asks of the compiler: a program that multiplies, on a machine that adds 1000 to
// each product.
#include "lazy/variants/entry.h"

#include "absl/strings/match.h"
#include "base/metrics.h"
#include "lazy/cuts/cut.h"
#include "lazy/trace/thread_trace.h"
#include "test/lazy/fake_backend.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

using backends::Fake;
using backends::Launched;
using base::Counter;
using Values = std::vector<float>;

// The last buffer becomes the product of the first and the last but one, and 1000.
absl::Status MultiplyAndMark(const Launched& launched) {
  const auto* x = static_cast<const float*>(launched.buffers.front());
  const auto* y = static_cast<const float*>(launched.buffers[launched.buffers.size() == 3 ? 1 : 0]);
  auto* z = static_cast<float*>(launched.buffers.back());
  for (int64_t k = 0; k < launched.iterations; ++k) z[k] = x[k] * y[k] + 1000;
  return absl::OkStatus();
}

class Entries : public RecordingTest {
 protected:
  void SetUp() override {
    RecordingTest::SetUp();
    SetOption("compile", "async");
    Fake().launch = MultiplyAndMark;
  }

  static Values SquareOf(const Values& values) {
    const at::Tensor x = Holding(values);
    const Values squares = ValuesOf(Mul(x, x));
    AwaitBackground();
    return squares;
  }

  const Values by_aten_ = {1, 4}, by_kernel_ = {1001, 1004};
};

TEST_F(Entries, TheSecondCutAsksTheCompiler) {
  Fake().is_slow = true;
  EXPECT_EQ(SquareOf({1, 2}), by_aten_);
  EXPECT_EQ(Fake().num_compiles(), 0);
  EXPECT_EQ(SquareOf({1, 2}), by_aten_);
  EXPECT_EQ(Fake().num_compiles(), 1);
  Fake().FinishCompiling();
  EXPECT_EQ(SquareOf({1, 2}), by_kernel_);
  EXPECT_EQ(SquareOf({1, 2}), by_kernel_);
  EXPECT_EQ(Fake().num_compiles(), 1);
  EXPECT_EQ(base::Get(Counter::kTracesRun), 4);
  EXPECT_EQ(base::Get(Counter::kTracesInterpreted), 2);
  EXPECT_EQ(base::Get(Counter::kTraceMisses), 1);
  EXPECT_EQ(base::Get(Counter::kTraceHits), 3);
}

TEST_F(Entries, WhileKernelsAreCompiledAtenRuns) {
  Fake().is_slow = true;
  for (int cut = 0; cut < 6; ++cut) EXPECT_EQ(SquareOf({1, 2}), by_aten_) << cut;
  EXPECT_EQ(Fake().num_compiles(), 1);
  EXPECT_EQ(Fake().num_launches(), 0);
  Fake().FinishCompiling();
  EXPECT_EQ(SquareOf({1, 2}), by_kernel_);
}

TEST_F(Entries, WhoWaitsForKernelsHasThemAtOnce) {
  SetOption("compile", "sync");
  Fake().is_slow = true;
  EXPECT_EQ(SquareOf({1, 2}), by_kernel_);
  EXPECT_EQ(base::Get(Counter::kTracesInterpreted), 0);
}

TEST_F(Entries, WithoutCompilingNothingIsAsked) {
  SetOption("compile", "off");
  for (int cut = 0; cut < 4; ++cut) EXPECT_EQ(SquareOf({1, 2}), by_aten_) << cut;
  EXPECT_EQ(Fake().num_compiles(), 0);
}

// A trace that was compiled is not, from then on.
TEST_F(Entries, CompilingMayBeSwitchedOff) {
  SetOption("compile", "sync");
  EXPECT_EQ(SquareOf({1, 2}), by_kernel_);
  SetOption("compile", "off");
  EXPECT_EQ(SquareOf({1, 2}), by_aten_);
}

// Kernels are free of sizes.
TEST_F(Entries, OtherSizesNeedNoOtherKernels) {
  for (int cut = 0; cut < 3; ++cut) SquareOf({1, 2});
  SquareOf({1, 2, 3});
  EXPECT_EQ(SquareOf({1, 2, 3}), (Values{1001, 1004, 1009}));
  EXPECT_EQ(Fake().num_compiles(), 1);
}

// A cut before a call whose shape is learned does not come again.
TEST_F(Entries, WhatIsCutOnceIsNotCompiled) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values{1, 2}), y = Mul(x, x);
  CutAndRun(PendingTrace(), kUnknownShape);
  EXPECT_EQ(Fake().num_compiles(), 0);
  EXPECT_EQ(base::Get(Counter::kTracesInterpreted), 1);
  EXPECT_EQ(base::Get(Counter::kTraceMisses), 0);
  EXPECT_EQ(ValuesOf(y), by_aten_);
}

// The kernel is at fault: ATen runs its call, and the compiler is not asked for ever.
TEST_F(Entries, ACallWhoseKernelFailsIsLeftToAten) {
  SetOption("compile", "sync");
  Fake().refuse = [](const codegen::Kernel&) { return absl::InvalidArgumentError("it does not compile"); };
  for (int cut = 0; cut < 4; ++cut) EXPECT_EQ(SquareOf({1, 2}), by_aten_) << cut;
  EXPECT_EQ(Fake().num_launches(), 0);
  EXPECT_EQ(base::Get(Counter::kCallsCompiled), 0);
  EXPECT_EQ(Fake().compiled().size(), 1);
}

// Of two kernels one fails. The other's call stays compiled.
TEST_F(Entries, OtherCallsStayCompiled) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values{1, 2}), index = Holding(std::vector<int64_t>{1, 0});
  std::string first;
  Fake().refuse = [&](const codegen::Kernel& kernel) {
    if (first.empty()) first = kernel.name;
    return kernel.name == first ? absl::InvalidArgumentError("it does not compile") : absl::OkStatus();
  };
  // y = (x + x)[index] and y * y: a sum, a call of ATen's, and a product.
  const at::Tensor y = Gather(Add(x, x), index), z = Mul(y, y);
  const Values values = ValuesOf(z);
  EXPECT_EQ(base::Get(Counter::kCallsCompiled), 1);
  EXPECT_EQ(base::Get(Counter::kCallsRecorded), 2);
  ASSERT_EQ(Fake().launched().size(), 1);
  EXPECT_NE(Fake().launched()[0].kernel, first);
}

// The machine is at fault: another plan would do no better.
TEST_F(Entries, WhereNothingCompilesAtenRuns) {
  SetOption("compile", "sync");
  Fake().refuse = [](const codegen::Kernel&) { return absl::UnavailableError("no compiler"); };
  for (int cut = 0; cut < 4; ++cut) EXPECT_EQ(SquareOf({1, 2}), by_aten_) << cut;
  EXPECT_EQ(Fake().num_compiles(), 1);
  EXPECT_EQ(base::Get(Counter::kTracesInterpreted), 4);
}

// The plan's call fails; call by call, the error says which, and what came before it is done.
TEST_F(Entries, AfterAFailedCallTheTraceRunsCallByCall) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values{1, 2}), index = Holding(std::vector<int64_t>{7, 0});
  const at::Tensor y = Mul(x, x), z = Gather(y, index);
  try {
    ValuesOf(z);
    FAIL() << "the index is out of range";
  } catch (const c10::Error& error) {
    EXPECT_TRUE(absl::StrContains(error.what(), "aten::gather, call 2 of 2")) << error.what();
  }
  EXPECT_EQ(Fake().num_launches(), 1);
}

TEST_F(Entries, ACutThatNeedsLessIsServed) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values{1, 2});
  {
    const at::Tensor y = Mul(x, x), z = Mul(y, y);
    CutThreadTrace("test");
  }
  const at::Tensor z = [&] {
    const at::Tensor y = Mul(x, x);
    return Mul(y, y);
  }();
  CutThreadTrace("test");
  EXPECT_EQ(base::Get(Counter::kTraceMisses), 1);
  EXPECT_EQ(base::Get(Counter::kTraceHits), 1);
}

// Then it returns what both need, and serves both.
TEST_F(Entries, ACutThatNeedsMoreHasAnEntryOfItsOwn) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values{1, 2});
  const auto program = [&](bool keeps_first, bool keeps_second) {
    at::Tensor y = Mul(x, x), z = Add(x, x), w = Mul(y, z);
    if (!keeps_first) y = at::Tensor();
    if (!keeps_second) z = at::Tensor();
    CutThreadTrace("test");
    return base::Get(Counter::kTraceMisses);
  };
  EXPECT_EQ(program(true, false), 1);
  EXPECT_EQ(program(false, true), 2);
  EXPECT_EQ(program(true, true), 2);
  EXPECT_EQ(program(false, false), 2);
}

// Results of a megabyte that cuts do not need, twice in a row.
TEST_F(Entries, CutsThatNeedMuchLessHaveAnEntryOfTheirOwn) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values(1 << 18, 2.0f));
  const auto program = [&](bool keeps_first) {
    at::Tensor y = Mul(x, x), z = Mul(y, y);
    if (!keeps_first) y = at::Tensor();
    CutThreadTrace("test");
    return base::Get(Counter::kTraceMisses);
  };
  EXPECT_EQ(program(true), 1);
  EXPECT_EQ(program(false), 1);
  EXPECT_EQ(program(false), 2);
  EXPECT_EQ(program(false), 2);
}

TEST_F(Entries, ReplacedOnesServeWhoNeedsMoreAgain) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values(1 << 18, 2.0f));
  const auto program = [&](bool keeps_first) {
    at::Tensor y = Mul(x, x), z = Mul(y, y);
    if (!keeps_first) y = at::Tensor();
    CutThreadTrace("test");
    return y;
  };
  program(true);
  for (int cut = 0; cut < 3; ++cut) program(false);
  const at::Tensor y = program(true);
  EXPECT_EQ(base::Get(Counter::kTraceMisses), 2);
  EXPECT_EQ(base::Get(Counter::kTraceHits), 3);
  EXPECT_EQ(base::Get(Counter::kTracesInterpreted), 0);
}

TEST_F(Entries, CallsAreCountedByWhoRanThem) {
  SetOption("compile", "sync");
  const at::Tensor x = Holding(Values{1, 2}), index = Holding(std::vector<int64_t>{1, 0});
  const at::Tensor z = Gather(Mul(x, x), index);
  EXPECT_EQ(ValuesOf(z), (Values{1004, 1001}));
  EXPECT_EQ(base::Get(Counter::kCallsCompiled), 1);
  EXPECT_EQ(base::Get(Counter::kCallsRecorded), 1);
  EXPECT_EQ(base::Get(base::Tally::kCallsRecordedByOp, "aten::gather"), 1);
  EXPECT_EQ(base::Get(base::Tally::kCallsRecordedByOp, "aten::mul.Tensor"), 0);
}

}  // namespace
}  // namespace torch_lazy::lazy
