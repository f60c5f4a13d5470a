// SPDX-License-Identifier: Apache-2.0
#include "test/codegen/op_graphs.h"

#include "absl/strings/str_cat.h"
#include "ir/builder.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;
using ir::Op;
using ir::Value;

constexpr Op kOps[] = {
#define X(name, ...) Op::k##name,
    TORCH_LAZY_OP_LIST(X)
#undef X
};
constexpr DType kDTypes[] = {DType::kBool, DType::kU8,  DType::kI8,   DType::kI16, DType::kI32,
                             DType::kI64,  DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

bool Takes(Op op, DType dtype) {
  if (ir::Info(op).kind != ir::Kind::kElementwise || op == Op::kCast || op == Op::kBernoulli) return false;
  return !ir::IsHalf(dtype) && ir::Has(ir::Info(op).dtypes, dtype);  // lowering computes 16-bit floats in f32
}

OpGraph Elementwise(DType dtype) {
  ir::Builder b;
  const ir::Type type = {dtype, {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type), y = b.Param(type);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  std::vector<bool> inexact;
  for (const Op op : kOps) {
    if (!Takes(op, dtype)) continue;
    const int inputs = ir::Info(op).num_inputs;
    Value result = ir::kNoValue;
    if (op == Op::kWhere) {
      result = b.Where(b.Binary(Op::kLt, x, y), x, y);
    } else {
      result = inputs == 1 ? b.Unary(op, x) : inputs == 2 ? b.Binary(op, x, y) : b.Fma(x, y, x);
    }
    outputs.push_back({result});
    names.emplace_back(ir::Info(op).text);
    inexact.push_back((ir::Info(op).traits & ir::kTranscendental) != 0);
  }
  return {"Elementwise", b.Finish(outputs), names, inexact};
}

// C++ has no literals of some types.
OpGraph Constants(DType dtype) {
  if (ir::IsHalf(dtype)) return {};
  ir::Builder b;
  const ir::Type type = {dtype, {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type);
  b.Param(type);
  const bool is_float = ir::IsFloat(dtype);
  const Value number = is_float ? b.Const(dtype, 1.0) : b.Const(dtype, 1);
  const Value numbers = b.FullLike(number, x);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  std::vector<bool> inexact;
  for (const Op op : kOps) {
    if (!Takes(op, dtype) || ir::Info(op).num_inputs != 2) continue;
    outputs.push_back({b.Binary(op, x, numbers)});
    outputs.push_back({b.Binary(op, numbers, x)});
    for (int k = 0; k < 2; ++k) names.emplace_back(ir::Info(op).text);
    for (int k = 0; k < 2; ++k) inexact.push_back((ir::Info(op).traits & ir::kTranscendental) != 0);
  }
  if (dtype != DType::kBool) {
    for (const Op op : {Op::kArgMax, Op::kArgMin}) {
      outputs.push_back({b.Reduce(op, numbers, {0}, /*keepdim=*/false)});
      names.emplace_back(ir::Info(op).text);
      inexact.push_back(false);
    }
  }
  return {"Constants", b.Finish(outputs), names, inexact};
}

OpGraph Casts(DType dtype) {
  ir::Builder b;
  const ir::Type type = {dtype, {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type);
  b.Param(type);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  for (const DType to : kDTypes) {
    outputs.push_back({b.Cast(x, to)});
    names.push_back(absl::StrCat("cast to ", ir::Name(to)));
  }
  return {"Casts", b.Finish(outputs), names, std::vector<bool>(names.size())};
}

OpGraph Reductions(DType dtype) {
  ir::Builder b;
  const ir::Type type = {dtype, {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type);
  b.Param(type);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  for (const Op op : {Op::kSum, Op::kProd, Op::kReduceMax, Op::kReduceMaxNumber, Op::kReduceMin, Op::kArgMax,
                      Op::kArgMin, Op::kAny, Op::kAll}) {
    const bool is_logical = op == Op::kAny || op == Op::kAll;
    if (is_logical != (dtype == DType::kBool) || ir::IsHalf(dtype)) continue;
    if (op == Op::kReduceMaxNumber && !ir::IsFloat(dtype)) continue;
    outputs.push_back({b.Reduce(op, x, {0}, /*keepdim=*/false)});
    names.emplace_back(ir::Info(op).text);
  }
  return {"Reductions", b.Finish(outputs), names, std::vector<bool>(names.size(), true)};
}

}  // namespace

std::vector<DType> DTypesOfOps() { return {std::begin(kDTypes), std::end(kDTypes)}; }

std::vector<OpGraph> OpGraphs(DType dtype) {
  std::vector<OpGraph> graphs = {Elementwise(dtype), Constants(dtype), Casts(dtype), Reductions(dtype)};
  std::erase_if(graphs, [](const OpGraph& graph) { return graph.names.empty(); });
  return graphs;
}

}  // namespace torch_lazy::codegen
