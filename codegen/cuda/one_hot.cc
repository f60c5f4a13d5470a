// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/one_hot.h"

#include "absl/strings/str_cat.h"
#include "codegen/cuda/iota_equals.h"
#include "codegen/cuda/thread_positions.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen::cuda {
namespace {

bool IsOp(const KernelText& text, int e, ir::Op op) {
  const Expression& expression = text.body().expressions[e];
  return expression.kind == Expression::Kind::kOp && text.graph().node(expression.node).op == op;
}

// Walks into casts of floats, and notes them.
int Inside(const KernelText& text, int e, std::vector<int>* casts) {
  while (IsOp(text, e, ir::Op::kCast) &&
         ir::IsFloat(text.body().expressions[text.body().expressions[e].arguments[0]].dtype)) {
    casts->insert(casts->begin(), e);
    e = text.body().expressions[e].arguments[0];
  }
  return e;
}

bool IsZero(const KernelText& text, int e) {
  const Expression& expression = text.body().expressions[e];
  const ir::Node& node = text.graph().node(expression.node);
  return expression.kind == Expression::Kind::kNumber && node.op == ir::Op::kConst && node.attrs.f == 0;
}

bool FindPlace(const KernelText& text, int condition, const Loop& loop, OneHot* found) {
  const Body& body = text.body();
  std::vector<int> parts = {condition};
  found->place = -1;
  while (!parts.empty()) {
    const int part = parts.back();
    const Expression& e = body.expressions[part];
    parts.pop_back();
    if (IsOp(text, part, ir::Op::kAnd)) {
      parts.insert(parts.end(), e.arguments.begin(), e.arguments.end());
    } else if (!body.uses_inner(part)) {
      found->conditions.push_back(part);
    } else if (found->place < 0 && IsIotaEquals(text, part, &loop)) {
      const int index = body.expressions[e.arguments[0]].kind == Expression::Kind::kIota ? 0 : 1;
      found->place = e.arguments[index];
      found->number = e.arguments[1 - index];
    } else {
      return false;
    }
  }
  return found->place >= 0;
}

}  // namespace

std::optional<OneHot> OneHotOf(const KernelText& text, int reduction, const Loop& loop) {
  const Body& body = text.body();
  const Expression& e = body.expressions[reduction];
  if (text.graph().node(e.node).op != ir::Op::kSum || !ir::IsFloat(e.dtype)) return std::nullopt;
  OneHot found;
  found.sum = reduction;
  found.where = Inside(text, e.arguments[0], &found.casts);
  if (!IsOp(text, found.where, ir::Op::kWhere)) return std::nullopt;
  const std::vector<int>& arguments = body.expressions[found.where].arguments;
  if (!IsZero(text, arguments[2]) || !FindPlace(text, arguments[0], loop, &found)) return std::nullopt;
  found.value = arguments[1];
  if (!body.uses_inner(found.value)) return found;
  found.load = Inside(text, found.value, &found.value_casts);
  const Expression& load = body.expressions[found.load];
  const bool is_of_row = load.kind == Expression::Kind::kLoad && !DependsOnData(body, body.addresses[load.address]);
  return is_of_row ? std::optional(found) : std::nullopt;
}

void DefineOneHot(const OneHot& one_hot, const Loop& loop, KernelText* text) {
  const Body& body = text->body();
  const std::string at = absl::StrCat("at", one_hot.sum), hit = absl::StrCat("hit", one_hot.sum);
  const std::vector<KernelText::Along> first = {{&loop, "0"}}, there = {{&loop, at}};
  text->Line(absl::StrCat("const long ", at, " = ", text->name(one_hot.number), " - (",
                          PlaceText(body.expressions[one_hot.place].address, first, text), ");"));
  std::string condition = absl::StrCat(at, " >= 0 && ", at, " < length");
  for (const int part : one_hot.conditions) absl::StrAppend(&condition, " && ", text->name(part));
  text->Line(absl::StrCat("const bool ", hit, " = ", condition, ";"));
  std::vector<int> defined = one_hot.value_casts;
  if (one_hot.load >= 0) {
    const Expression& load = body.expressions[one_hot.load];
    defined.push_back(one_hot.load);
    text->DefineAs(one_hot.load,
                   LoadText(load.dtype, absl::StrCat("(", hit, " ? ", PlaceText(load.address, there, text), " : (",
                                                     MemoryType(load.dtype), ")0)")));
    for (const int cast : one_hot.value_casts) text->Define(cast, "");
  }
  text->DefineAs(one_hot.where, absl::StrCat(hit, " ? ", text->name(one_hot.value), " : 0"));
  for (const int cast : one_hot.casts) text->Define(cast, "");
  const int summed = one_hot.casts.empty() ? one_hot.where : one_hot.casts.back();
  text->DefineAs(one_hot.sum, absl::StrCat("0 + ", text->name(summed)));  // -0 sums to 0
  defined.push_back(one_hot.where);
  defined.insert(defined.end(), one_hot.casts.begin(), one_hot.casts.end());
  for (const int e : defined) text->Forget(e);
}

}  // namespace torch_lazy::codegen::cuda
