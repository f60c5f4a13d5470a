// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/iota_equals.h"

#include "absl/strings/str_cat.h"
#include "codegen/cuda/thread_positions.h"

namespace torch_lazy::codegen::cuda {
namespace {

// Which argument is the index along the loop; -1: none.
int IndexArgument(const Body& body, const Expression& eq, const Loop& loop) {
  for (const int k : {0, 1}) {
    const Expression& index = body.expressions[eq.arguments[k]];
    const Expression& number = body.expressions[eq.arguments[1 - k]];
    if (index.kind != Expression::Kind::kIota || index.dtype != ir::DType::kI64) continue;
    const Affine& place = body.addresses[index.address].index;
    if (place.CoefficientOf(loop.variable).is_one() && (number.uses & loop.bits) == 0) return k;
  }
  return -1;
}

}  // namespace

bool IsIotaEquals(const KernelText& text, int expression, const Loop* loop) {
  const Body& body = text.body();
  const Expression& e = body.expressions[expression];
  return loop != nullptr && e.kind == Expression::Kind::kOp && text.graph().node(e.node).op == ir::Op::kEq &&
         IndexArgument(body, e, *loop) >= 0;
}

void DeclareIotaEquals(int expression, const Loop& loop, absl::Span<const KernelText::Along> along, KernelText* text) {
  const Body& body = text->body();
  const Expression& e = body.expressions[expression];
  const int index = IndexArgument(body, e, loop);
  const std::string far = absl::StrCat("d", expression);
  text->Line(absl::StrCat("const long ", far, " = ", text->name(e.arguments[1 - index]), " - (",
                          PlaceText(body.expressions[e.arguments[index]].address, along, text), ");"));
  text->Line(absl::StrCat("const int h", expression, " = ", far, " >= 0 && ", far, " < V ? (int)", far, " : -1;"));
}

void DefineIotaEquals(int expression, KernelText* text) {
  text->DefineAs(expression, absl::StrCat("h", expression, " == k"));
}

}  // namespace torch_lazy::codegen::cuda
