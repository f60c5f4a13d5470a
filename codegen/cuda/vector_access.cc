// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/vector_access.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/kernels/row_stages.h"
#include "codegen/plan/seen_sizes.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr int64_t kAccess = 16;  // bytes

void AddOnce(const std::string& text, std::vector<std::string>* list) {
  if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(text);
}

bool IsMultiple(const Polynomial& polynomial, int64_t of) {
  return std::all_of(polynomial.terms().begin(), polynomial.terms().end(),
                     [of](const Monomial& term) { return term.coefficient % of == 0; });
}

bool IsOf(const Affine::Term& term, const Loop& loop) {
  return term.variable < 64 && (loop.bits >> term.variable & 1) != 0;
}

// Does the row lie at the same place whatever the other loops do?
bool StaysInPlace(const Address& address, const Loop& innermost) {
  return std::all_of(address.index.terms.begin(), address.index.terms.end(),
                     [&](const Affine::Term& term) { return IsOf(term, innermost); });
}

}  // namespace

VectorAccess::VectorAccess(const Body& body, const Loop* innermost, uint64_t walked, KernelText* text)
    : body_(body), innermost_(innermost), text_(*text) {
  std::vector<bool> adds_up(body.addresses.size(), false);  // now and then
  for (const Store& store : body.stores) adds_up[store.address] = IsShareSum(body, store);
  int64_t widest = 0, widest_once = 1;  // of what is a row's own, and of what all rows read
  for (size_t a = 0; a < body.addresses.size(); ++a) {
    const Address& address = body.addresses[a];
    bool contiguous = !adds_up[a] && address.slot >= 0 && innermost != nullptr &&
                      address.index.CoefficientOf(innermost->variable).is_one();
    for (const Affine::Term& term : address.index.terms) {
      if (body.variables[term.variable].kind != Variable::Kind::kData || !contiguous) continue;
      contiguous = (body.expressions[body.data[term.variable]].uses & walked) == 0;
    }
    is_contiguous_.push_back(contiguous);
    is_of_all_rows_.push_back(contiguous && StaysInPlace(address, *innermost));
    if (!contiguous) continue;
    int64_t& most = is_of_all_rows_.back() ? widest_once : widest;
    most = std::max(most, ir::SizeBytes(text->SlotType(address.slot)));
  }
  width_ = static_cast<int>(std::clamp<int64_t>(kAccess / (widest > 0 ? widest : widest_once), 4, 8));
}

std::vector<Polynomial> VectorAccess::Steps() const {
  std::vector<Polynomial> steps;
  for (size_t a = 0; a < is_contiguous_.size(); ++a) {
    if (!is_contiguous_[a]) continue;
    for (const Affine::Term& term : body_.addresses[a].index.terms) {
      if (!IsOf(term, *innermost_)) steps.push_back(term.coefficient);
    }
  }
  return steps;
}

bool VectorAccess::FollowsFromExtent() const {
  const Polynomial extent(innermost_->extent);
  const std::vector<Polynomial> steps = Steps();
  const auto follows = [&](const Polynomial& step) { return step == extent || IsMultiple(step, width_); };
  if (!std::all_of(steps.begin(), steps.end(), follows)) return false;
  for (size_t a = 0; a < is_contiguous_.size(); ++a) {
    if (is_contiguous_[a] && !body_.addresses[a].index.offset.terms().empty()) return false;
  }
  return true;
}

std::string VectorAccess::Condition(bool is_flat, int width) {
  std::vector<std::string> numbers, places;
  std::vector<Polynomial> steps = Steps();
  if (!is_flat) steps.push_back(innermost_->extent);
  for (const Polynomial& step : steps) {
    if (!IsMultiple(step, width)) AddOnce(text_.Number(step), &numbers);
  }
  for (size_t a = 0; a < is_contiguous_.size(); ++a) {
    if (!is_contiguous_[a]) continue;
    const Address& address = body_.addresses[a];
    const int64_t bytes = std::min(kAccess, width * ir::SizeBytes(text_.SlotType(address.slot)));
    const std::string offset = text_.Number(address.index.offset);
    const std::string pointer = text_.PointerTo(address.slot);
    const std::string place = offset == "0" ? pointer : absl::StrCat("(", pointer, " + ", offset, ")");
    AddOnce(absl::StrCat("(unsigned long)", place, " % ", bytes), &places);
  }
  std::vector<std::string> conditions;
  if (!numbers.empty())
    conditions.push_back(
        absl::StrCat(numbers.size() == 1 ? numbers[0] : absl::StrCat("(", absl::StrJoin(numbers, " | "), ")"), " % ",
                     width, " == 0"));
  for (const std::string& place : places) conditions.push_back(absl::StrCat(place, " == 0"));
  return conditions.empty() ? "true" : absl::StrJoin(conditions, " && ");
}

bool VectorAccess::LoadsVector(int expression) const {
  const Expression& e = body_.expressions[expression];
  return e.kind == Expression::Kind::kLoad && IsContiguous(e.address);
}

bool VectorAccess::HasVectorsInRow() const {
  bool has_any = false;
  for (size_t a = 0; a < is_contiguous_.size(); ++a) {
    if (!is_contiguous_[a]) continue;
    if (DependsOnData(body_, body_.addresses[a])) return false;  // known later
    has_any = true;
  }
  return has_any;
}

void VectorAccess::PlaceVectorsInRow(const std::string& length) {
  const std::vector<KernelText::Along> begin = {{innermost_, "0"}};
  std::string aligned;
  std::vector<std::string> conditions = {absl::StrCat("aligned <= ", length)};
  for (size_t a = 0; a < is_contiguous_.size(); ++a) {
    if (!is_contiguous_[a]) continue;
    const std::string place = PointerText(static_cast<int>(a), begin, &text_);
    const int64_t bytes = ir::SizeBytes(text_.TypeAt(a));
    if (aligned.empty()) aligned = absl::StrCat("-(long)((unsigned long)(", place, ") / ", bytes, ") & ", width_ - 1);
    AddOnce(absl::StrCat("(unsigned long)(", place, " + aligned) % ", std::min(kAccess, width_ * bytes), " == 0"),
            &conditions);
  }
  text_.Line(absl::StrCat("constexpr int V = ", width_, ";"));
  text_.Line(absl::StrCat("const long aligned = ", aligned, ";"));
  text_.Line(absl::StrCat("const bool wide = ", absl::StrJoin(conditions, " && "), ";"));
  text_.Line(absl::StrCat("const long head = wide ? aligned : 0, vectors = wide ? (", length, " - head) / V : 0;"));
  text_.Line(absl::StrCat("const long others = ", length, " - vectors * V;"));
}

bool VectorAccess::HoldsForSeenSizes(const CompileOptions& options) const {
  std::vector<Polynomial> numbers = Steps();
  numbers.push_back(innermost_->extent);
  for (size_t a = 0; a < is_contiguous_.size(); ++a) {
    const Address& address = body_.addresses[a];
    if (is_contiguous_[a]) numbers.push_back(body_.slots[address.slot].offset + address.index.offset);
  }
  return std::all_of(numbers.begin(), numbers.end(), [&](const Polynomial& number) {
    double typical = 0;
    for (const Monomial& term : number.terms()) typical += SeenSize(term, options.seen_extents);
    return std::fmod(typical, width_) == 0;
  });
}

}  // namespace torch_lazy::codegen::cuda
