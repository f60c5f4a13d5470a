// SPDX-License-Identifier: Apache-2.0
#include "codegen/cpu/row_fold.h"

#include "absl/strings/str_cat.h"

namespace torch_lazy::codegen {
namespace {

bool IsIndex(ir::Op op) { return op == ir::Op::kArgMax || op == ir::Op::kArgMin; }

std::string ForEachLane() { return absl::StrCat("for (int l = 0; l < ", kLanes, "; ++l) "); }

}  // namespace

RowFold::RowFold(int expression, KernelText* text)
    : expression_(expression), text_(*text), name_(text->NewName('c')), is_index_(IsIndex(node().op)), lanes_(name_) {
  if (!is_index_) fold_ = FoldOf(Target::kCpu, node().op, node().type.dtype);
}

const ir::Node& RowFold::node() const { return text_.graph().node(text_.body().expressions[expression_].node); }

std::string RowFold::ArgFunction() const { return node().op == ir::Op::kArgMax ? "lazy_arg<true>" : "lazy_arg<false>"; }

void RowFold::Declare() {
  if (is_index_) {
    const int operand = text_.body().expressions[expression_].arguments[0];
    const std::string type = ComputeType(text_.body().expressions[operand].dtype);
    text_.Line(absl::StrCat(type, " ", name_, "[", kLanes, "] = {};"));
    text_.Line(absl::StrCat("long ", name_, "_at[", kLanes, "];"));
    text_.Line(absl::StrCat(ForEachLane(), name_, "_at[l] = -1;"));
    return;
  }
  text_.Line(absl::StrCat(fold_.type, " ", name_, "[", kLanes, "];"));
  text_.Line(absl::StrCat(ForEachLane(), name_, "[l] = ", fold_.identity, ";"));
}

void RowFold::BeginBlock() {
  if (!wants_blocks()) return;
  lanes_ = absl::StrCat(name_, "_block");
  text_.Line(absl::StrCat(fold_.block_type, " ", lanes_, "[", kLanes, "] = {};"));
}

void RowFold::Step(const std::string& index) {
  const std::string& operand = text_.name(text_.body().expressions[expression_].arguments[0]);
  const std::string lane = absl::StrCat(lanes_, "[l]");
  if (is_index_) {
    text_.Line(absl::StrCat(ArgFunction(), "(", lane, ", ", name_, "_at[l], ", operand, ", ", index, ");"));
  } else {
    text_.Line(absl::StrCat(lane, " = ", Substitute(fold_.step, {lane, operand}), ";"));
  }
}

void RowFold::EndBlock() {
  if (!wants_blocks()) return;
  const std::string lane = absl::StrCat(name_, "[l]");
  const std::string sum = Substitute(fold_.combine, {lane, absl::StrCat(lanes_, "[l]")});
  text_.Line(absl::StrCat(ForEachLane(), lane, " = ", sum, ";"));
}

void RowFold::Combine() {
  const std::string low = absl::StrCat(name_, "[l]"), high = absl::StrCat(name_, "[l + half]");
  std::string line = absl::StrCat(low, " = ", Substitute(fold_.combine, {low, high}), ";");
  if (is_index_) {
    line = absl::StrCat(ArgFunction(), "(", low, ", ", name_, "_at[l], ", high, ", ", name_, "_at[l + half]);");
  }
  text_.Line("#pragma GCC unroll 8");  // all: loops of known length have no tests
  text_.Open(absl::StrCat("for (int half = ", kLanes / 2, "; half > 0; half /= 2) {"));
  text_.Line(absl::StrCat("for (int l = 0; l < half; ++l) ", line));
  text_.Close("}");
  const std::string type = ComputeType(text_.body().expressions[expression_].dtype);
  text_.DefineAs(expression_, is_index_ ? absl::StrCat(name_, "_at[0]") : absl::StrCat("(", type, ")", name_, "[0]"));
}

}  // namespace torch_lazy::codegen
