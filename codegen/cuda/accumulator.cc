// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/accumulator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr char kAllLanes[] = "0xffffffffu";

std::string OfRow(int rows) { return rows > 1 ? "[row]" : ""; }

// Lanes exchange numbers of 4 and 8 bytes.
std::string ExchangedType(const std::string& type) {
  const bool is_exchanged = type == "float" || type == "double" || type == "long" || type == "int";
  return is_exchanged ? type : "int";
}

}  // namespace

Accumulator::Accumulator(int expression, KernelText* text, int rows, bool is_one_block)
    : expression_(expression),
      text_(*text),
      rows_(rows),
      name_(text->NewName('c')),
      value_(name_ + OfRow(rows)),
      index_(name_ + "_at" + OfRow(rows)),
      is_index_(HasIndex(node())),
      step_to_(value_) {
  if (is_index_) {
    const int operand = text_.body().expressions[expression_].arguments[0];
    type_ = ExchangedType(ComputeType(text_.body().expressions[operand].dtype));
    block_type_ = type_;
    return;
  }
  const bool is_share = ir::Info(node().op).kind == ir::Kind::kPartial;
  const int operand = text_.body().expressions[expression_].arguments[0];
  fold_ = FoldOf(Target::kCuda, is_share ? ir::ReductionOf(node().op) : node().op,
                 is_share ? text_.body().expressions[operand].dtype : node().type.dtype);
  block_type_ = ExchangedType(fold_.block_type);
  type_ = is_one_block ? block_type_ : ExchangedType(fold_.type);
}

const ir::Node& Accumulator::node() const { return text_.graph().node(text_.body().expressions[expression_].node); }

std::string Accumulator::Combined(const std::string& other, const std::string& other_at) const {
  if (!is_index_) return absl::StrCat(value_, " = ", Substitute(fold_.combine, {value_, other}), ";");
  return absl::StrCat(node().op == ir::Op::kArgMax ? "lazy_arg<true>(" : "lazy_arg<false>(", value_, ", ", index_, ", ",
                      other, ", ", other_at, ");");
}

void Accumulator::Declare() {
  const std::string identity = is_index_ ? "0" : fold_.identity;
  if (rows_ == 1) {
    text_.Line(absl::StrCat(type_, " ", name_, " = ", identity, ";"));
    if (is_index_) text_.Line(absl::StrCat("long ", name_, "_at = -1;"));
    return;
  }
  text_.Line(absl::StrCat(type_, " ", name_, "[", rows_, "];"));
  if (is_index_) text_.Line(absl::StrCat("long ", name_, "_at[", rows_, "];"));
  if (block_type_ != type_) text_.Line(absl::StrCat(block_type_, " ", name_, "_block[", rows_, "];"));
  ForEachRow(rows_, &text_, [&] {
    text_.Line(absl::StrCat(value_, " = ", identity, ";"));
    if (is_index_) text_.Line(absl::StrCat(index_, " = -1;"));
  });
}

void Accumulator::BeginBlock() {
  if (block_type_ == type_) return;
  step_to_ = absl::StrCat(name_, "_block", OfRow(rows_));
  in_block_ = true;
  text_.Line(absl::StrCat(rows_ == 1 ? block_type_ + " " : "", step_to_, " = 0;"));
}

void Accumulator::Step(const std::string& index, const std::string& in) {
  const std::string& operand = text_.name(text_.body().expressions[expression_].arguments[0]);
  if (is_index_) {
    const std::string at = in.empty() ? index : absl::StrCat(in, " ? ", index, " : -1L");
    return text_.Line(Combined(absl::StrCat("(", type_, ")", operand), at));
  }
  std::string sum = ProductAdded();
  if (sum.empty()) sum = Substitute(fold_.step, {step_to_, operand});
  text_.Line(in.empty() ? absl::StrCat(step_to_, " = ", sum, ";")
                        : absl::StrCat("if (", in, ") ", step_to_, " = ", sum, ";"));
}

// The sum with a product of its type, in one instruction, rounded once; empty: it is no such sum.
std::string Accumulator::ProductAdded() const {
  const auto& expressions = text_.body().expressions;
  const Expression& operand = expressions[expressions[expression_].arguments[0]];
  const std::string& type = in_block_ ? block_type_ : type_;
  const bool is_f32 = operand.dtype == ir::DType::kF32 && type == "float";
  const bool is_f64 = operand.dtype == ir::DType::kF64 && type == "double";
  if (node().op != ir::Op::kSum || operand.kind != Expression::Kind::kOp ||
      text_.graph().node(operand.node).op != ir::Op::kMul || (!is_f32 && !is_f64))
    return "";
  return absl::StrCat(is_f32 ? "fmaf(" : "fma(", text_.name(operand.arguments[0]), ", ",
                      text_.name(operand.arguments[1]), ", ", step_to_, ")");
}

void Accumulator::EndBlock() {
  if (!in_block_) return;
  in_block_ = false;
  text_.Line(Combined(step_to_, ""));
}

void Accumulator::FoldFromLane(const std::string& distance) {
  const auto other = [&](const std::string& x) {
    return absl::StrCat("__shfl_down_sync(", kAllLanes, ", ", x, ", ", distance, ")");
  };
  const std::string value = name_ + "_other", at = name_ + "_other_at";
  if (in_block_) {
    text_.Line(absl::StrCat("const ", block_type_, " ", value, " = ", other(step_to_), ";"));
    return text_.Line(absl::StrCat(step_to_, " = ", Substitute(fold_.combine, {step_to_, value}), ";"));
  }
  text_.Line(absl::StrCat("const ", type_, " ", value, " = ", other(value_), ";"));
  if (is_index_) text_.Line(absl::StrCat("const long ", at, " = ", other(index_), ";"));
  text_.Line(Combined(value, at));
}

void Accumulator::FoldFrom(const std::string& place) {
  text_.Line(Combined(absl::StrCat(name_, "_shared[", place, "]"), absl::StrCat(name_, "_at_shared[", place, "]")));
}

void Accumulator::TakeLane0(int lanes) {
  const std::string width = lanes < 32 ? absl::StrCat(", ", lanes) : "";
  const auto first = [&](const std::string& x) {
    return absl::StrCat(x, " = __shfl_sync(", kAllLanes, ", ", x, ", 0", width, ");");
  };
  text_.Line(first(value_));
  if (is_index_) text_.Line(first(index_));
}

void Accumulator::DeclareShared(const std::string& size) {
  text_.Line(absl::StrCat("__shared__ ", type_, " ", name_, "_shared[", size, "];"));
  if (is_index_) text_.Line(absl::StrCat("__shared__ long ", name_, "_at_shared[", size, "];"));
}

void Accumulator::Put(const std::string& place) {
  text_.Line(absl::StrCat(name_, "_shared[", place, "] = ", value_, ";"));
  if (is_index_) text_.Line(absl::StrCat(name_, "_at_shared[", place, "] = ", index_, ";"));
}

void Accumulator::Take(const std::string& place) {
  text_.Line(absl::StrCat(value_, " = ", name_, "_shared[", place, "];"));
  if (is_index_) text_.Line(absl::StrCat(index_, " = ", name_, "_at_shared[", place, "];"));
}

void Accumulator::DefineResult() {
  const std::string type = ComputeType(text_.body().expressions[expression_].dtype);
  const std::string result = is_index_ ? index_ : absl::StrCat("(", type, ")", value_);
  if (rows_ == 1) return text_.DefineAs(expression_, result);
  text_.SetName(expression_, absl::StrCat("(", result, ")"));
}

void ForEachRow(int rows, KernelText* text, const std::function<void()>& write) {
  if (rows == 1) return write();
  text->Line("#pragma unroll");
  text->Open(absl::StrCat("for (int row = 0; row < ", rows, "; ++row) {"));
  write();
  text->Close("}");
}

void CombineLanes(std::vector<Accumulator>& accumulators, int lanes, KernelText* text, int rows) {
  if (lanes < 2) return;
  text->Line("#pragma unroll");
  text->Open(absl::StrCat("for (int d = ", lanes / 2, "; d > 0; d /= 2) {"));
  ForEachRow(rows, text, [&] {
    for (Accumulator& accumulator : accumulators) accumulator.FoldFromLane("d");
  });
  text->Close("}");
}

void CombineGroup(std::vector<Accumulator>& accumulators, int threads, KernelText* text, int rows) {
  if (accumulators.empty()) return;
  const auto each = [&](const std::function<void(Accumulator&)>& write) {
    ForEachRow(rows, text, [&] { std::for_each(accumulators.begin(), accumulators.end(), write); });
  };
  CombineLanes(accumulators, std::min(threads, 32), text, rows);
  each([](Accumulator& accumulator) { accumulator.EndBlock(); });
  if (threads > 32) {
    const int warps = threads / 32;
    const std::string first = rows > 1 ? absl::StrCat("row * ", warps, " + ") : "";
    for (Accumulator& accumulator : accumulators) accumulator.DeclareShared(absl::StrCat(rows * warps));
    text->Open("if (t % 32 == 0) {");
    each([&](Accumulator& accumulator) { accumulator.Put(first + "t / 32"); });
    text->Close("}");
    text->Line("__syncthreads();");
    each([&](Accumulator& accumulator) { accumulator.Take(absl::StrCat(first, "t % ", warps)); });
    CombineLanes(accumulators, warps, text, rows);
  }
  each([&](Accumulator& accumulator) { accumulator.TakeLane0(std::min(threads, 32)); });
  for (Accumulator& accumulator : accumulators) accumulator.DefineResult();
}

}  // namespace torch_lazy::codegen::cuda
