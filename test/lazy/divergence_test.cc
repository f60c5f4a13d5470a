// SPDX-License-Identifier: Apache-2.0
// What is said of the first call that was not known.
#include "lazy/trace/divergence.h"

#include "lazy/cuts/cut.h"
#include "test/lazy/recording.h"

namespace torch_lazy::lazy {
namespace {

using Values = std::vector<float>;

class Divergences : public RecordingTest {
 protected:
  // y = x * x, z = y + x * 2.0 is known.
  void SetUp() override {
    RecordingTest::SetUp();
    const at::Tensor y = Mul(x_, x_), z = Add(y, x_, 2.0);
    CutThreadTrace("test");
  }
  static std::string Difference() { return DifferenceOf(*PendingTrace()); }

  const at::Tensor x_ = Holding(Values{1, 2}), other_ = Holding(Values{3, 4});
};

TEST_F(Divergences, AnotherOperator) {
  const at::Tensor y = Mul(x_, x_), z = Mul(y, x_);
  EXPECT_EQ(Difference(), "call 2, aten::mul.Tensor: it came where aten::add.Tensor was called");
}

TEST_F(Divergences, AnotherGeometry) {
  const at::Tensor longer = Holding(Values{1, 2, 3}), y = Mul(longer, longer);
  EXPECT_EQ(Difference(), "call 1, aten::mul.Tensor: argument `self` is Float[3] where it was Float[2]");
}

TEST_F(Divergences, AnotherStorage) {
  const at::Tensor y = Mul(x_, x_), z = Add(x_, y, 2.0);
  EXPECT_EQ(Difference(),
            "call 2, aten::add.Tensor: argument `self` is tensor 0 of the trace, made before it, where it was the "
            "result of call 1, aten::mul.Tensor");
}

TEST_F(Divergences, AnotherTypeOfNumber) {
  const at::Tensor y = Mul(x_, x_), z = Add(y, x_, 2);
  EXPECT_EQ(Difference(), "call 2, aten::add.Tensor: a number has another type, or a storage is seen in another part");
}

TEST_F(Divergences, ALongerTrace) {
  const at::Tensor y = Mul(x_, x_), z = Add(y, x_, 2.0), w = Mul(z, z);
  EXPECT_EQ(Difference(), "call 3, aten::mul.Tensor: no known trace goes so far");
}

TEST_F(Divergences, OnlyTheFirstOneCounts) {
  const at::Tensor y = Mul(x_, x_), z = Mul(y, x_), w = Add(z, z);
  EXPECT_EQ(Difference(), "call 2, aten::mul.Tensor: it came where aten::add.Tensor was called");
}

TEST_F(Divergences, AShorterTrace) {
  const at::Tensor y = Mul(x_, x_);
  EXPECT_EQ(Difference(), "its calls are known, but were not cut there");
}

}  // namespace
}  // namespace torch_lazy::lazy
