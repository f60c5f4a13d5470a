// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/row_invariants.h"

#include <algorithm>

#include "codegen/kernels/row_stages.h"

namespace torch_lazy::codegen::cuda {

void RowInvariants::Define(int stage) { threads_.rows == 1 ? DefineOfOne(stage) : DefineOfSome(stage); }

void RowInvariants::DefineOfOne(int stage) {
  for (size_t e = 0; e < body_.expressions.size(); ++e) {
    const Expression& expression = body_.expressions[e];
    const int number = static_cast<int>(e);
    if (expression.depth != stage || body_.uses_inner(number) || text_.defined(number)) continue;
    text_.Define(number, expression.address < 0 ? "" : PlaceText(expression.address, {}, &text_));
  }
  StoreThem(stage);
}

void RowInvariants::StoreThem(int stage) {
  for (const Store& store : body_.stores) {
    if (body_.expressions[store.expression].depth != stage || StoresAlongRow(body_, store)) continue;
    if (MayReplace(store)) text_.Line(threads_.is_warp() ? "__syncwarp();" : "__syncthreads();");
    text_.Line(absl::StrCat(threads_.rows > 1 ? "if (is_row && t == 0) " : "if (t == 0) ",
                            PlaceText(store.address, {}, &text_), " = ", function_.StoredText(store), ";"));
  }
}

// The same for all rows done at once, whose numbers are arrays.
void RowInvariants::DefineOfSome(int stage) {
  std::vector<int> numbers;
  for (size_t e = 0; e < body_.expressions.size(); ++e) {
    const int number = static_cast<int>(e);
    if (body_.expressions[e].depth == stage && !body_.uses_inner(number) && !text_.defined(number))
      numbers.push_back(number);
  }
  for (const int number : numbers)
    text_.Line(absl::StrCat(ComputeType(body_.expressions[number].dtype), " y", number, "[", threads_.rows, "];"));
  const bool stores = std::any_of(body_.stores.begin(), body_.stores.end(), [&](const Store& s) {
    return body_.expressions[s.expression].depth == stage && !StoresAlongRow(body_, s);
  });
  if (numbers.empty() && !stores) return;
  function_.ForEachPlacedRow([&] {
    for (const int number : numbers) {
      const Expression& e = body_.expressions[number];
      std::string place = e.address < 0 ? "" : PlaceText(e.address, {}, &text_);
      if (e.kind == Expression::Kind::kLoad && DependsOnData(body_, body_.addresses[e.address]))
        place = RowFunctionParts::Guarded("is_row", place, e.dtype);
      text_.Define(number, place);
      text_.Line(absl::StrCat("y", number, "[row] = ", text_.name(number), ";"));
    }
    StoreThem(stage);
  });
  for (const int number : numbers) text_.SetName(number, absl::StrCat("y", number, "[row]"));
}

// A number may be stored where one is read that every thread of the group needs.
bool RowInvariants::MayReplace(const Store& store) const {
  const Address& place = body_.addresses[store.address];
  return std::any_of(body_.expressions.begin(), body_.expressions.end(), [&](const Expression& e) {
    return e.kind == Expression::Kind::kLoad && body_.addresses[e.address].index == place.index;
  });
}

}  // namespace torch_lazy::codegen::cuda
