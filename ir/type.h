// SPDX-License-Identifier: Apache-2.0
// Element types, extents, and the type of a value.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace torch_lazy::ir {

enum class DType : uint8_t { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64, kC64, kC128 };

int64_t SizeBytes(DType dtype);
absl::string_view Name(DType dtype);  // "bool", "u8", "i64", "bf16", "f32", "c64", ...
bool ParseDType(absl::string_view text, DType* dtype);
constexpr bool IsFloat(DType d) { return d >= DType::kF16 && d <= DType::kF64; }
constexpr bool IsInteger(DType d) { return d >= DType::kU8 && d <= DType::kI64; }
constexpr bool IsComplex(DType d) { return d >= DType::kC64; }
constexpr bool IsHalf(DType d) { return d == DType::kF16 || d == DType::kBF16; }

// The size of one dimension: a constant, or a symbol whose number is known only when a plan is
// bound.
//
// Symbols are numbered from 0 by the trace; two extents are known to be equal only if they are the
// same constant or the same symbol. Different symbols may have equal numbers. A symbol is never 1,
// and may be 0.
class Extent {
 public:
  constexpr Extent() = default;
  static constexpr Extent Constant(int64_t n) { return Extent(n); }
  static constexpr Extent Symbol(int32_t index) { return Extent(-1 - static_cast<int64_t>(index)); }
  constexpr bool is_symbol() const { return code_ < 0; }
  constexpr bool is_constant() const { return code_ >= 0; }
  constexpr int64_t constant() const { return code_; }
  constexpr int32_t symbol() const { return static_cast<int32_t>(-1 - code_); }
  constexpr bool is_one() const { return code_ == 1; }
  // The number it stands for; symbols[k] is the number of symbol k.
  int64_t Value(absl::Span<const int64_t> symbols) const { return is_symbol() ? symbols[symbol()] : code_; }
  friend constexpr bool operator==(Extent a, Extent b) { return a.code_ == b.code_; }
  friend constexpr bool operator!=(Extent a, Extent b) { return a.code_ != b.code_; }
  template <typename H>
  friend H AbslHashValue(H h, Extent e) {
    return H::combine(std::move(h), e.code_);
  }
  std::string ToString() const;  // "128" or "s3"

 private:
  explicit constexpr Extent(int64_t code) : code_(code) {}
  int64_t code_ = 1;
};

using Dims = absl::InlinedVector<Extent, 4>;

struct Type {
  DType dtype = DType::kF32;
  Dims dims;

  int rank() const { return static_cast<int>(dims.size()); }
  std::string ToString() const;  // "f32[s0, 64]"
  friend bool operator==(const Type& a, const Type& b) { return a.dtype == b.dtype && a.dims == b.dims; }
  friend bool operator!=(const Type& a, const Type& b) { return !(a == b); }
};

// Number of elements / bytes once the symbols are bound.
int64_t NumElements(absl::Span<const Extent> dims, absl::Span<const int64_t> symbols);
int64_t SizeBytes(const Type& type, absl::Span<const int64_t> symbols);

}  // namespace torch_lazy::ir
