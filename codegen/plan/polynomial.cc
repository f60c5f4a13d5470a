// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/polynomial.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace torch_lazy::codegen {
namespace {

// Any fixed order: symbols by index, then constants by value.
bool Before(ir::Extent a, ir::Extent b) {
  if (a.is_symbol() != b.is_symbol()) return a.is_symbol();
  return a.is_symbol() ? a.symbol() < b.symbol() : a.constant() < b.constant();
}

bool FactorsBefore(const Monomial& a, const Monomial& b) {
  return std::lexicographical_compare(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(), Before);
}

}  // namespace

void Monomial::MultiplyBy(ir::Extent extent) {
  if (extent.is_one()) return;
  if (extent.is_constant() && extent.constant() == 0) {
    coefficient = 0;
    return;
  }
  factors.insert(std::upper_bound(factors.begin(), factors.end(), extent, Before), extent);
}

Monomial operator*(const Monomial& a, const Monomial& b) {
  Monomial product = a;
  product.coefficient *= b.coefficient;
  for (const ir::Extent factor : b.factors) product.MultiplyBy(factor);
  return product;
}

Monomial ProductOf(absl::Span<const ir::Extent> extents) {
  Monomial product;
  for (const ir::Extent extent : extents) product.MultiplyBy(extent);
  return product;
}

std::optional<Monomial> Divide(const Monomial& a, const Monomial& b) {
  if (b.coefficient == 0 || a.coefficient % b.coefficient != 0) return std::nullopt;
  Monomial quotient = a;
  quotient.coefficient /= b.coefficient;
  for (const ir::Extent factor : b.factors) {
    const auto it = std::find(quotient.factors.begin(), quotient.factors.end(), factor);
    if (it == quotient.factors.end()) return std::nullopt;
    quotient.factors.erase(it);
  }
  return quotient;
}

Polynomial& Polynomial::operator+=(const Polynomial& other) {
  for (const Monomial& term : other.terms_) {
    const auto it = std::lower_bound(terms_.begin(), terms_.end(), term, FactorsBefore);
    if (it == terms_.end() || it->factors != term.factors) {
      terms_.insert(it, term);
      continue;
    }
    it->coefficient += term.coefficient;
    if (it->coefficient == 0) terms_.erase(it);
  }
  return *this;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const Monomial& x : a.terms_) {
    for (const Monomial& y : b.terms_) product += Polynomial(x * y);
  }
  return product;
}

int64_t Polynomial::Value(absl::Span<const int64_t> symbols) const {
  int64_t sum = 0;
  for (const Monomial& term : terms_) {
    int64_t product = term.coefficient;
    for (const ir::Extent factor : term.factors) product *= factor.Value(symbols);
    sum += product;
  }
  return sum;
}

std::string Polynomial::ToString() const {
  const auto append = [](std::string* out, const Monomial& term) {
    std::vector<std::string> factors;
    if (term.coefficient != 1 || term.is_constant()) factors.push_back(absl::StrCat(term.coefficient));
    for (const ir::Extent factor : term.factors) factors.push_back(factor.ToString());
    absl::StrAppend(out, absl::StrJoin(factors, " "));
  };
  return terms_.empty() ? "0" : absl::StrJoin(terms_, " + ", append);
}

}  // namespace torch_lazy::codegen
