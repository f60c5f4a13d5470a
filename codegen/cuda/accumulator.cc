// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/accumulator.h"

#include "absl/strings/str_cat.h"

namespace torch_lazy::codegen::cuda {
namespace {

constexpr char kAllLanes[] = "0xffffffffu";

// Lanes exchange numbers of 4 and 8 bytes.
std::string ExchangedType(const std::string& type) {
  const bool is_exchanged = type == "float" || type == "double" || type == "long" || type == "int";
  return is_exchanged ? type : "int";
}

}  // namespace

Accumulator::Accumulator(int expression, KernelText* text)
    : expression_(expression),
      text_(*text),
      name_(text->NewName('c')),
      is_index_(node().op == ir::Op::kArgMax || node().op == ir::Op::kArgMin),
      step_to_(name_) {
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
  type_ = ExchangedType(fold_.type);
  block_type_ = ExchangedType(fold_.block_type);
}

const ir::Node& Accumulator::node() const {
  return text_.graph().node(text_.body().expressions[expression_].node);
}

std::string Accumulator::Combined(const std::string& other, const std::string& other_at) const {
  if (!is_index_) return absl::StrCat(name_, " = ", Substitute(fold_.combine, {name_, other}), ";");
  return absl::StrCat(node().op == ir::Op::kArgMax ? "lazy_arg<true>(" : "lazy_arg<false>(", name_,
                      ", ", name_, "_at, ", other, ", ", other_at, ");");
}

void Accumulator::Declare() {
  text_.Line(absl::StrCat(type_, " ", name_, " = ", is_index_ ? "0" : fold_.identity, ";"));
  if (is_index_) text_.Line(absl::StrCat("long ", name_, "_at = -1;"));
}

void Accumulator::BeginBlock() {
  if (block_type_ == type_) return;
  step_to_ = name_ + "_block";
  in_block_ = true;
  text_.Line(absl::StrCat(block_type_, " ", step_to_, " = 0;"));
}

void Accumulator::Step(const std::string& index, const std::string& in) {
  const std::string& operand = text_.name(text_.body().expressions[expression_].arguments[0]);
  if (is_index_) {
    const std::string at = in.empty() ? index : absl::StrCat(in, " ? ", index, " : -1L");
    return text_.Line(Combined(absl::StrCat("(", type_, ")", operand), at));
  }
  const std::string sum = Substitute(fold_.step, {step_to_, operand});
  text_.Line(in.empty() ? absl::StrCat(step_to_, " = ", sum, ";")
                        : absl::StrCat("if (", in, ") ", step_to_, " = ", sum, ";"));
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
  text_.Line(absl::StrCat("const ", type_, " ", value, " = ", other(name_), ";"));
  if (is_index_) text_.Line(absl::StrCat("const long ", at, " = ", other(name_ + "_at"), ";"));
  text_.Line(Combined(value, at));
}

void Accumulator::FoldFrom(const std::string& place) {
  text_.Line(Combined(absl::StrCat(name_, "_shared[", place, "]"),
                      absl::StrCat(name_, "_at_shared[", place, "]")));
}

void Accumulator::TakeLane0() {
  const auto first = [&](const std::string& x) {
    return absl::StrCat(x, " = __shfl_sync(", kAllLanes, ", ", x, ", 0);");
  };
  text_.Line(first(name_));
  if (is_index_) text_.Line(first(name_ + "_at"));
}

void Accumulator::DeclareShared(const std::string& size) {
  text_.Line(absl::StrCat("__shared__ ", type_, " ", name_, "_shared[", size, "];"));
  if (is_index_) text_.Line(absl::StrCat("__shared__ long ", name_, "_at_shared[", size, "];"));
}

void Accumulator::Put(const std::string& place) {
  text_.Line(absl::StrCat(name_, "_shared[", place, "] = ", name_, ";"));
  if (is_index_) text_.Line(absl::StrCat(name_, "_at_shared[", place, "] = ", name_, "_at;"));
}

void Accumulator::Take(const std::string& place) {
  text_.Line(absl::StrCat(name_, " = ", name_, "_shared[", place, "];"));
  if (is_index_) text_.Line(absl::StrCat(name_, "_at = ", name_, "_at_shared[", place, "];"));
}

void Accumulator::DefineResult() {
  const std::string type = ComputeType(text_.body().expressions[expression_].dtype);
  text_.DefineAs(expression_, is_index_ ? name_ + "_at" : absl::StrCat("(", type, ")", name_));
}

namespace {

// Into lane 0, from so many lanes.
void CombineLanes(std::vector<Accumulator>& accumulators, int lanes, KernelText* text) {
  if (lanes < 2) return;
  text->Line("#pragma unroll");
  text->Open(absl::StrCat("for (int d = ", lanes / 2, "; d > 0; d /= 2) {"));
  for (Accumulator& accumulator : accumulators) accumulator.FoldFromLane("d");
  text->Close("}");
}

}  // namespace

void CombineGroup(std::vector<Accumulator>& accumulators, int threads, KernelText* text) {
  if (accumulators.empty()) return;
  CombineLanes(accumulators, 32, text);
  for (Accumulator& accumulator : accumulators) accumulator.EndBlock();
  if (threads > 32) {
    const int warps = threads / 32;
    for (Accumulator& accumulator : accumulators) accumulator.DeclareShared(absl::StrCat(warps));
    text->Open("if (t % 32 == 0) {");
    for (Accumulator& accumulator : accumulators) accumulator.Put("t / 32");
    text->Close("}");
    text->Line("__syncthreads();");
    for (Accumulator& accumulator : accumulators) accumulator.Take(absl::StrCat("t % ", warps));
    CombineLanes(accumulators, warps, text);
  }
  for (Accumulator& accumulator : accumulators) accumulator.TakeLane0();
  for (Accumulator& accumulator : accumulators) accumulator.DefineResult();
}

}  // namespace torch_lazy::codegen::cuda
