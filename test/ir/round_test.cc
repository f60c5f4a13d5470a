// SPDX-License-Identifier: Apache-2.0
#include "ir/round.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace torch_lazy::ir {
namespace {

// Every finite 16-bit pattern is a number that rounds to itself and lies in memory as that pattern.
TEST(Round, KeepsEvery16BitFloat) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double value = FromHalfBits(dtype, static_cast<uint16_t>(bits));
      if (std::isnan(value)) continue;
      ASSERT_EQ(std::bit_cast<uint64_t>(RoundTo(dtype, value)), std::bit_cast<uint64_t>(value)) << bits;
      ASSERT_EQ(HalfBits(dtype, value), bits);
    }
  }
}

TEST(Round, GoesToTheNearestAndToEvenOnTies) {
  EXPECT_EQ(RoundTo(DType::kF16, 2049), 2048);
  EXPECT_EQ(RoundTo(DType::kF16, 2051), 2052);
  EXPECT_EQ(RoundTo(DType::kF16, 65519), 65504);
  EXPECT_EQ(RoundTo(DType::kF16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(RoundTo(DType::kF16, 0x1p-25), 0);
  EXPECT_EQ(RoundTo(DType::kF16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(RoundTo(DType::kBF16, 257), 256);
  EXPECT_EQ(RoundTo(DType::kBF16, 259), 260);
  EXPECT_EQ(RoundTo(DType::kF32, 16777217), 16777216);
  EXPECT_EQ(RoundTo(DType::kF64, 0.1), 0.1);
}

TEST(Round, WrapsIntegers) {
  EXPECT_EQ(WrapTo(DType::kU8, -1), 255);
  EXPECT_EQ(WrapTo(DType::kI8, 128), -128);
  EXPECT_EQ(WrapTo(DType::kI32, int64_t{1} << 32), 0);
  EXPECT_EQ(WrapTo(DType::kBool, 2), 1);
}

TEST(Round, TruncatesFloats) {
  EXPECT_EQ(FloatToInt(DType::kI64, -1.9), -1);
  EXPECT_EQ(FloatToInt(DType::kU8, -1.0), 255);
  EXPECT_EQ(FloatToInt(DType::kI8, 200.7), -56);
  EXPECT_EQ(FloatToInt(DType::kI32, std::nan("")), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(FloatToInt(DType::kI64, 1e30), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(FloatToInt(DType::kBool, 0.5), 1);
  EXPECT_EQ(FloatToInt(DType::kBool, std::nan("")), 1);
}

}  // namespace
}  // namespace torch_lazy::ir
