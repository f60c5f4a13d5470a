// SPDX-License-Identifier: Apache-2.0
#include "ir/round.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace torch_lazy::ir {
namespace {

constexpr int kF16Digits = 11, kF16LeastExponent = -24;
constexpr double kF16Max = 65504;

double RoundToF16(float value) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - kF16Digits, kF16LeastExponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::abs(rounded) > kF16Max ? std::copysign(std::numeric_limits<double>::infinity(), rounded) : rounded;
}

double RoundToBF16(float value) {
  if (std::isnan(value)) return value;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t ties_to_even = 0x7fff + ((bits >> 16) & 1);
  return std::bit_cast<float>((bits + ties_to_even) & 0xffff0000u);
}

// x86's conversions give the smallest number where the result does not fit.
template <typename Int>
Int Truncate(double value) {
  constexpr double kEnd = -static_cast<double>(std::numeric_limits<Int>::min());
  return value >= -kEnd && value < kEnd ? static_cast<Int>(value) : std::numeric_limits<Int>::min();
}

}  // namespace

double RoundTo(DType dtype, double value) {
  if (dtype == DType::kF32) return static_cast<float>(value);
  if (dtype == DType::kF16) return RoundToF16(static_cast<float>(value));
  if (dtype == DType::kBF16) return RoundToBF16(static_cast<float>(value));
  return value;
}

int64_t WrapTo(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  if (dtype == DType::kU8) return static_cast<uint8_t>(value);
  if (dtype == DType::kI8) return static_cast<int8_t>(value);
  if (dtype == DType::kI16) return static_cast<int16_t>(value);
  if (dtype == DType::kI32) return static_cast<int32_t>(value);
  return value;
}

int64_t FloatToInt(DType dtype, double value) {
  if (dtype == DType::kBool) return value != 0;
  // A C++ compiler converts to narrow signed integers by way of 32 bits; ATen takes u8 by way
  // of 64.
  if (dtype == DType::kI8 || dtype == DType::kI16) return WrapTo(dtype, Truncate<int32_t>(std::trunc(value)));
  if (dtype == DType::kI32) return Truncate<int32_t>(std::trunc(value));
  return WrapTo(dtype, Truncate<int64_t>(value));
}

uint16_t HalfBits(DType dtype, double value) {
  const float single = static_cast<float>(value);
  if (dtype == DType::kBF16) return static_cast<uint16_t>(std::bit_cast<uint32_t>(single) >> 16);
  const uint16_t sign = std::signbit(single) ? 0x8000 : 0;
  if (std::isnan(single)) return sign | 0x7e00;
  if (std::isinf(single)) return sign | 0x7c00;
  const double magnitude = std::abs(value);
  if (magnitude < 0x1p-14) return sign | static_cast<uint16_t>(magnitude * 0x1p24);  // subnormal
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  return sign | static_cast<uint16_t>((exponent + 14) << 10) | static_cast<uint16_t>(std::ldexp(fraction, 11) - 1024);
}

double FromHalfBits(DType dtype, uint16_t bits) {
  if (dtype == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * fraction * 0x1p-24;
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace torch_lazy::ir
