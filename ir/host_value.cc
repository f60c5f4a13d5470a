// SPDX-License-Identifier: Apache-2.0
#include "ir/host_value.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "ir/attrs.h"
#include "ir/round.h"

namespace torch_lazy::ir {
namespace {

template <typename Stored, typename Number>
void Load(const void* bytes, std::vector<Number>& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, static_cast<const char*>(bytes) + i * sizeof stored, sizeof stored);
    numbers[i] = stored;
  }
}

template <typename Stored, typename Number>
void Store(const std::vector<Number>& numbers, void* bytes) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Stored stored = static_cast<Stored>(numbers[i]);
    std::memcpy(static_cast<char*>(bytes) + i * sizeof stored, &stored, sizeof stored);
  }
}

bool SameNumber(double a, double b) { return (std::isnan(a) && std::isnan(b)) || SameBits(a, b); }

}  // namespace

int64_t HostValue::num_elements() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

HostValue MakeHostValue(DType dtype, std::vector<int64_t> sizes) {
  HostValue value{dtype, std::move(sizes), {}, {}};
  if (IsFloat(dtype)) {
    value.floats.resize(value.num_elements());
  } else {
    value.integers.resize(value.num_elements());
  }
  return value;
}

HostValue MakeFloats(DType dtype, std::vector<int64_t> sizes, absl::Span<const double> numbers) {
  HostValue value = MakeHostValue(dtype, std::move(sizes));
  LAZY_CHECK(value.floats.size() == numbers.size(), value.floats.size(), " elements, ", numbers.size(), " numbers");
  for (size_t i = 0; i < numbers.size(); ++i) value.floats[i] = RoundTo(dtype, numbers[i]);
  return value;
}

HostValue MakeIntegers(DType dtype, std::vector<int64_t> sizes, absl::Span<const int64_t> numbers) {
  HostValue value = MakeHostValue(dtype, std::move(sizes));
  LAZY_CHECK(value.integers.size() == numbers.size(), value.integers.size(), " elements, ", numbers.size(), " numbers");
  for (size_t i = 0; i < numbers.size(); ++i) value.integers[i] = WrapTo(dtype, numbers[i]);
  return value;
}

HostValue FromBytes(DType dtype, std::vector<int64_t> sizes, const void* bytes) {
  HostValue value = MakeHostValue(dtype, std::move(sizes));
  if (IsHalf(dtype)) {
    Load<uint16_t>(bytes, value.floats);
    for (double& number : value.floats) number = FromHalfBits(dtype, static_cast<uint16_t>(number));
  } else if (dtype == DType::kF32) {
    Load<float>(bytes, value.floats);
  } else if (dtype == DType::kF64) {
    Load<double>(bytes, value.floats);
  } else if (dtype == DType::kI64) {
    Load<int64_t>(bytes, value.integers);
  } else if (dtype == DType::kI32) {
    Load<int32_t>(bytes, value.integers);
  } else if (dtype == DType::kI16) {
    Load<int16_t>(bytes, value.integers);
  } else if (dtype == DType::kI8) {
    Load<int8_t>(bytes, value.integers);
  } else {
    Load<uint8_t>(bytes, value.integers);
  }
  return value;
}

void ToBytes(const HostValue& value, void* bytes) {
  if (IsHalf(value.dtype)) {
    std::vector<int64_t> bits;
    for (double number : value.floats) bits.push_back(HalfBits(value.dtype, number));
    Store<uint16_t>(bits, bytes);
  } else if (value.dtype == DType::kF32) {
    Store<float>(value.floats, bytes);
  } else if (value.dtype == DType::kF64) {
    Store<double>(value.floats, bytes);
  } else if (SizeBytes(value.dtype) == 8) {
    Store<int64_t>(value.integers, bytes);
  } else if (SizeBytes(value.dtype) == 4) {
    Store<int32_t>(value.integers, bytes);
  } else if (SizeBytes(value.dtype) == 2) {
    Store<int16_t>(value.integers, bytes);
  } else {
    Store<uint8_t>(value.integers, bytes);
  }
}

bool SameNumbers(const HostValue& a, const HostValue& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes || a.integers != b.integers) return false;
  for (size_t i = 0; i < a.floats.size(); ++i) {
    if (!SameNumber(a.floats[i], b.floats[i])) return false;
  }
  return true;
}

}  // namespace torch_lazy::ir
