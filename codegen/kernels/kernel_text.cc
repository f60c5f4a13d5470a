// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/kernel_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/fingerprint.h"
#include "codegen/kernels/math_text.h"
#include "codegen/kernels/op_text.h"

namespace torch_lazy::codegen {
namespace {

constexpr char kHead[] = "@head\n";

}  // namespace

// A compiler that knows only one of them skips the other. Clang would compare pointers at run time, and take one number
// at a time where a result lies on an operand.
void KernelText::Independent() {
  Line("#pragma clang loop vectorize(assume_safety)");
  Line("#pragma GCC ivdep");
}

void KernelText::Line(const std::string& line) { absl::StrAppend(&lines_, std::string(2 * depth_, ' '), line, "\n"); }

void KernelText::Open(const std::string& line) {
  Line(line);
  ++depth_;
}

void KernelText::Close(const std::string& line) {
  --depth_;
  Line(line);
}

std::string KernelText::Number(const Polynomial& polynomial) {
  const Monomial* const single = polynomial.single();
  if (polynomial.is_zero()) return "0";
  if (single != nullptr && single->is_constant()) return absl::StrCat(single->coefficient);
  const auto [known, is_new] = places_.try_emplace(polynomial, extents_.size());
  if (is_new) extents_.push_back(polynomial);
  return absl::StrCat("n", known->second);
}

std::string KernelText::PointerTo(int slot) { return absl::StrCat("p", slot); }

std::string KernelText::IndexText(const Affine& index, absl::Span<const Along> along, bool with_offset) {
  std::vector<std::string> terms;
  const auto add = [&](const std::string& number, const Polynomial& stride) {
    if (stride.is_zero()) return;
    terms.push_back(stride.is_one() ? number : absl::StrCat(number, " * ", Number(stride)));
  };
  for (const Along& a : along) add(a.index, index.CoefficientOf(a.loop->variable));
  if (with_offset) {
    for (const Affine::Term& term : index.terms) {
      if (body_.variables[term.variable].kind != Variable::Kind::kData) continue;
      add(name(body_.data[term.variable]), term.coefficient);
    }
    if (!index.offset.is_zero()) terms.push_back(Number(index.offset));
  }
  return terms.empty() ? "0" : absl::StrJoin(terms, " + ");
}

std::string KernelText::ScalarText(ir::Value scalar) {
  const ir::Node& node = graph_.node(scalar);
  const int32_t index = static_cast<int32_t>(node.attrs.index);
  const auto found = std::find(scalars_.begin(), scalars_.end(), index);
  const size_t place = found - scalars_.begin();
  if (found == scalars_.end()) scalars_.push_back(index);
  return ir::IsInteger(node.type.dtype) ? absl::StrCat("__builtin_bit_cast(long, s[", place, "])")
                                        : absl::StrCat("s[", place, "]");
}

void KernelText::Define(int expression, const std::string& place) {
  const Expression& e = body_.expressions[expression];
  const ir::Node& node = graph_.node(e.node);
  std::string text;
  switch (e.kind) {
    case Expression::Kind::kLoad:
      text = LoadText(e.dtype, place);
      break;
    case Expression::Kind::kIota:
      text = absl::StrCat("(", ComputeType(e.dtype), ")(", place, ")");
      break;
    case Expression::Kind::kNumber:
      if (node.op == ir::Op::kConst) {
        text =
            ir::IsFloat(e.dtype) ? FloatLiteral(target_, e.dtype, node.attrs.f) : IntegerLiteral(e.dtype, node.attrs.i);
      } else {
        text = node.op == ir::Op::kScalar ? ScalarText(e.node)
                                          : Number(Monomial{1, {node.attrs.extent}});  // also a constant one
      }
      break;
    case Expression::Kind::kOp:
      if (erfs_.contains(expression)) return SetName(expression, name(e.arguments[0]));  // its reader computes it
      text = TextOf(expression);
      break;
    case Expression::Kind::kReduce:
    case Expression::Kind::kShareSum:
      LAZY_CHECK(false, "a sum is no single expression");
  }
  if (e.kind == Expression::Kind::kNumber && node.op == ir::Op::kConst)
    SetName(expression, text);
  else
    DefineAs(expression, text);
  CheckBounds(expression);
}

void KernelText::CheckBounds(int expression) {
  for (const Bound& bound : body_.bounds) {
    if (bound.expression != expression) continue;
    Line(absl::StrCat("if ((unsigned long)", name(expression), " >= (unsigned long)", Number(bound.extent), ") ",
                      target_ == Target::kCuda ? "__trap();" : "__builtin_trap();"));
  }
}

void KernelText::FindErfs() {
  for (size_t e = 0; e < precisions_.size(); ++e) {
    const int erf = precisions_[e] == Precision::kBF16 ? ErfOfComplement(graph_, body_, static_cast<int>(e)) : -1;
    if (erf >= 0) erfs_.insert(erf);
  }
}

std::string KernelText::TextOf(int expression) const {
  const Expression& e = body_.expressions[expression];
  const ir::Node& node = graph_.node(e.node);
  if (const int erf = ErfOfComplement(graph_, body_, expression); erfs_.contains(erf))
    return absl::StrCat("lazy_one_plus_erf_of_bf16(", name(erf), ")");
  std::vector<std::string> arguments;
  for (const int argument : e.arguments) arguments.push_back(name(argument));
  const bool is_fold_of_one = ir::Info(node.op).kind == ir::Kind::kReduce;
  if (!is_fold_of_one) return OpText(target_, graph_, node, arguments, precisions_[expression]);
  return node.op == ir::Op::kArgMax || node.op == ir::Op::kArgMin ? "0" : arguments[0];
}

void KernelText::DefineAs(int expression, const std::string& text) {
  const std::string name = NewName('v');
  Line(absl::StrCat("const ", ComputeType(body_.expressions[expression].dtype), " ", name, " = ", text, ";"));
  SetName(expression, name);
}

void KernelText::Head() { absl::StrAppend(&lines_, kHead); }

std::string KernelText::HeadText(const Arrays& arrays) const {
  std::string head;
  if (arrays.scalars != "s" && !scalars_.empty())
    absl::StrAppend(&head, "  const double* const s = ", arrays.scalars, ";\n");
  for (size_t k = 0; k < body_.slots.size(); ++k) {
    const std::string type =
        absl::StrCat(body_.slots[k].written ? "" : "const ", MemoryType(SlotType(static_cast<int>(k))), "*");
    absl::StrAppend(&head, "  ", type, " const p", k, " = (", type, ")", arrays.buffers, "[", k, "];\n");
  }
  if (!extents_.empty()) {
    std::vector<std::string> texts;
    for (size_t k = 0; k < extents_.size(); ++k)
      texts.push_back(absl::StrCat("n", k, " = ", arrays.numbers, "[", k, "]"));
    absl::StrAppend(&head, "  const long ", absl::StrJoin(texts, ", "), ";\n");
  }
  return head;
}

std::string KernelText::Lines(const Arrays& arrays) const {
  return absl::StrReplaceAll(lines_, {{kHead, HeadText(arrays)}});
}

WrittenKernel KernelText::Finish(const std::string& prefix, const ir::Dims& range) {
  const std::string body = absl::StrCat(
      "extern \"C\" void KERNEL(void* const* b, const long* n, const double* s, long begin, long "
      "end, void* scratch) {\n",
      HeadText({"b", "n", "s"}), lines_, "}\n");
  return Written(prefix, range, MathFunctionsFor(body) + body);
}

WrittenKernel KernelText::Written(const std::string& prefix, const ir::Dims& range, const std::string& text) const {
  WrittenKernel written;
  written.kernel.name = absl::StrCat(prefix, "_", base::FingerprintOf(text).ToString());
  written.kernel.source = absl::StrReplaceAll(text, {{"KERNEL", written.kernel.name}});
  written.instance.extents = extents_;
  written.instance.scalars = scalars_;
  written.instance.range = range;
  written.slots = body_.slots;
  return written;
}

ir::Dims RangeOf(const Loops& loops) {
  ir::Dims range;
  for (const Loop& loop : loops.outer) {
    if (loop.extent.coefficient == 0) return {ir::Extent::Constant(0)};  // nothing to do, whatever the symbols are
    range.insert(range.end(), loop.extent.factors.begin(), loop.extent.factors.end());
  }
  return range;
}

}  // namespace torch_lazy::codegen
