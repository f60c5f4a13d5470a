// SPDX-License-Identifier: Apache-2.0
// Integers known only when sizes are: sums of products of extents.
//
// Strides, offsets and loop bounds are these. A kernel gets their values, and so serves whatever has as many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/type.h"

namespace torch_lazy::codegen {

// coefficient * factor * factor * ...; factors are symbols or constants above 1, sorted.
struct Monomial {
  int64_t coefficient = 1;
  absl::InlinedVector<ir::Extent, 4> factors;

  bool is_constant() const { return factors.empty(); }
  void MultiplyBy(ir::Extent extent);
  friend bool operator==(const Monomial& a, const Monomial& b) {
    return a.coefficient == b.coefficient && a.factors == b.factors;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Monomial& m) {
    return H::combine(std::move(h), m.coefficient, m.factors);
  }
};

Monomial operator*(const Monomial& a, const Monomial& b);
Monomial ProductOf(absl::Span<const ir::Extent> extents);
// a / b if that is a monomial.
std::optional<Monomial> Divide(const Monomial& a, const Monomial& b);

class Polynomial {
 public:
  Polynomial() = default;                                               // zero
  Polynomial(int64_t constant) : Polynomial(Monomial{constant, {}}) {}  // NOLINT: a number is a polynomial
  Polynomial(const Monomial& monomial) {                                // NOLINT
    if (monomial.coefficient != 0) terms_.push_back(monomial);
  }

  absl::Span<const Monomial> terms() const { return terms_; }
  bool is_zero() const { return terms_.empty(); }
  bool is_one() const { return terms_.size() == 1 && terms_[0] == Monomial{}; }
  const Monomial* single() const { return terms_.size() == 1 ? &terms_[0] : nullptr; }

  int64_t Value(absl::Span<const int64_t> symbols) const;
  std::string ToString() const;  // "2 s0 s1 + 3"

  Polynomial& operator+=(const Polynomial& other);
  friend Polynomial operator+(Polynomial a, const Polynomial& b) { return a += b; }
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
  friend bool operator==(const Polynomial& a, const Polynomial& b) { return a.terms_ == b.terms_; }
  friend bool operator!=(const Polynomial& a, const Polynomial& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const Polynomial& p) {
    return H::combine(std::move(h), p.terms_);
  }

 private:
  absl::InlinedVector<Monomial, 1> terms_;  // sorted by factors, no two alike, no coefficient 0
};

}  // namespace torch_lazy::codegen
