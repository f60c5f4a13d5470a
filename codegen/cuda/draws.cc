// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/draws.h"

#include "absl/strings/str_cat.h"
#include "codegen/cuda/thread_positions.h"

namespace torch_lazy::codegen::cuda {

bool DrawsForNeighbours(const KernelText& text, int expression, const Loop* loop) {
  const Body& body = text.body();
  const Expression& draw = body.expressions[expression];
  if (loop == nullptr || draw.kind != Expression::Kind::kOp || text.graph().node(draw.node).op != ir::Op::kBernoulli)
    return false;
  const Expression& index = body.expressions[draw.arguments[0]];
  if (index.kind != Expression::Kind::kIota) return false;
  const Address& place = body.addresses[index.address];
  return place.index.CoefficientOf(loop->variable).is_one() && !DependsOnData(body, place);
}

void DeclareDraws(int expression, absl::Span<const KernelText::Along> along, KernelText* text) {
  const Body& body = text->body();
  const std::vector<int>& arguments = body.expressions[expression].arguments;
  text->Line(absl::StrCat("bool u", expression, "[V];"));
  std::string call = absl::StrCat("lazy_bernoullis(u", expression, ", ",
                                  PlaceText(body.expressions[arguments[0]].address, along, text));
  for (size_t k = 1; k < arguments.size(); ++k) absl::StrAppend(&call, ", ", text->name(arguments[k]));
  text->Line(absl::StrCat(call, ");"));
}

void DefineDraw(int expression, KernelText* text) { text->DefineAs(expression, absl::StrCat("u", expression, "[k]")); }

}  // namespace torch_lazy::codegen::cuda
