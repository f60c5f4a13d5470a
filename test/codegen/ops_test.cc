// SPDX-License-Identifier: Apache-2.0
// Every elementwise op, cast and reduction of every dtype, on special numbers too.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/builder.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;
using ir::Op;
using ir::Value;

constexpr Op kOps[] = {
#define X(name, text, kind, inputs, dtype_rule, traits) Op::k##name,
    TORCH_LAZY_OP_LIST(X)
#undef X
};
constexpr DType kDTypes[] = {DType::kBool, DType::kU8,  DType::kI8,   DType::kI16, DType::kI32,
                             DType::kI64,  DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

bool IsForFloats(Op op) {
  constexpr Op kForFloats[] = {Op::kSqrt, Op::kRsqrt, Op::kRecip, Op::kDiv, Op::kFloor,
                               Op::kCeil, Op::kTrunc, Op::kRound, Op::kFma};
  return (ir::Info(op).traits & ir::kTranscendental) != 0 ||
         std::find(std::begin(kForFloats), std::end(kForFloats), op) != std::end(kForFloats);
}
bool IsBitwise(Op op) {
  return op == Op::kAnd || op == Op::kOr || op == Op::kXor || op == Op::kNot;
}
bool IsForBool(Op op) {
  return IsBitwise(op) || op == Op::kAdd || op == Op::kMul || op == Op::kWhere ||
         ir::Info(op).dtype_rule == ir::DTypeRule::kCompare || op == Op::kMax || op == Op::kMin;
}

bool Takes(Op op, DType dtype) {
  if (ir::Info(op).kind != ir::Kind::kElementwise || op == Op::kCast) return false;
  if (ir::IsHalf(dtype)) return false;  // lowering computes these in f32
  if (dtype == DType::kBool) return IsForBool(op);
  if (ir::IsInteger(dtype)) return !IsForFloats(op) || op == Op::kPow;
  return !IsBitwise(op);
}

std::vector<double> Numbers(DType dtype) {
  std::vector<double> numbers = {0,  1,  2,  3,  7,    100,  0.5,  1.5, 2.5,
                                 -1, -2, -3, -7, -100, -0.5, -1.5, -2.5};
  if (!ir::IsFloat(dtype)) return numbers;
  for (const double x :
       {-0.0, 1e-40, -1e-40, 1e30, -1e30, 3e9, -3e9, 1e19, 0.1, 65519.0, 65520.0, 6e-8, 3e-8,
        static_cast<double>(INFINITY), -static_cast<double>(INFINITY), std::nan("")}) {
    numbers.push_back(x);
  }
  return numbers;
}

// All pairs of the dtype's numbers, as two parameters.
void AddPairs(DType dtype, ir::EvaluateInputs* inputs) {
  const std::vector<double> numbers = Numbers(dtype);
  std::vector<double> a, b;
  for (const double x : numbers) {
    for (const double y : numbers) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const auto count = static_cast<int64_t>(a.size());
  inputs->symbols = {count};
  for (const std::vector<double>& list : {a, b}) {
    if (ir::IsFloat(dtype)) {
      inputs->params.push_back(ir::MakeFloats(dtype, {count}, list));
    } else {
      const std::vector<int64_t> whole(list.begin(), list.end());
      inputs->params.push_back(ir::MakeIntegers(dtype, {count}, whole));
    }
  }
}

class Ops : public testing::TestWithParam<DType> {
 protected:
  // Evaluates and runs; `names` say what each output is. Those in `inexact` may differ in the last
  // places.
  void Check(const ir::Graph& graph, const std::vector<std::string>& names,
             const std::vector<bool>& inexact) {
    ir::EvaluateInputs inputs;
    AddPairs(GetParam(), &inputs);
    const absl::StatusOr<std::vector<ir::HostValue>> expected = ir::Evaluate(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const absl::StatusOr<Plan> plan = Compile(graph, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const std::vector<ir::HostValue> actual = RunPlan(graph, *plan, &inputs);
    ASSERT_EQ(actual.size(), names.size());
    for (size_t k = 0; k < names.size(); ++k) {
      const Tolerance tolerance =
          inexact[k] ? Tolerance{GetParam() == DType::kF64 ? 1e-15 : 3e-7, 1e-44} : Tolerance{};
      ExpectClose(actual[k], (*expected)[k], tolerance, names[k]);
    }
  }
};

TEST_P(Ops, Elementwise) {
  ir::Builder b;
  const ir::Type type = {GetParam(), {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type), y = b.Param(type);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  std::vector<bool> inexact;
  for (const Op op : kOps) {
    if (!Takes(op, GetParam())) continue;
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
  if (!outputs.empty()) Check(b.Finish(outputs), names, inexact);
}

// C++ has no literals of some types.
TEST_P(Ops, Constants) {
  if (ir::IsHalf(GetParam())) return;
  ir::Builder b;
  const ir::Type type = {GetParam(), {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type);
  b.Param(type);
  const bool is_float = ir::IsFloat(GetParam());
  const Value number = is_float ? b.Const(GetParam(), 1.0) : b.Const(GetParam(), 1);
  const Value numbers = b.FullLike(number, x);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  std::vector<bool> inexact;
  for (const Op op : kOps) {
    if (!Takes(op, GetParam()) || ir::Info(op).num_inputs != 2) continue;
    outputs.push_back({b.Binary(op, x, numbers)});
    outputs.push_back({b.Binary(op, numbers, x)});
    for (int k = 0; k < 2; ++k) names.emplace_back(ir::Info(op).text);
    for (int k = 0; k < 2; ++k) inexact.push_back((ir::Info(op).traits & ir::kTranscendental) != 0);
  }
  if (GetParam() != DType::kBool) {
    for (const Op op : {Op::kArgMax, Op::kArgMin}) {
      outputs.push_back({b.Reduce(op, numbers, {0}, /*keepdim=*/false)});
      names.emplace_back(ir::Info(op).text);
      inexact.push_back(false);
    }
  }
  Check(b.Finish(outputs), names, inexact);
}

TEST_P(Ops, Casts) {
  ir::Builder b;
  const ir::Type type = {GetParam(), {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type);
  b.Param(type);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  for (const DType to : kDTypes) {
    outputs.push_back({b.Cast(x, to)});
    names.push_back(absl::StrCat("cast to ", ir::Name(to)));
  }
  Check(b.Finish(outputs), names, std::vector<bool>(names.size()));
}

TEST_P(Ops, Reductions) {
  ir::Builder b;
  const ir::Type type = {GetParam(), {ir::Extent::Symbol(0)}};
  const Value x = b.Param(type);
  b.Param(type);
  std::vector<ir::Output> outputs;
  std::vector<std::string> names;
  for (const Op op : {Op::kSum, Op::kProd, Op::kReduceMax, Op::kReduceMaxNumber, Op::kReduceMin, Op::kArgMax, Op::kArgMin,
                      Op::kAny, Op::kAll}) {
    const bool is_logical = op == Op::kAny || op == Op::kAll;
    if (is_logical != (GetParam() == DType::kBool) || ir::IsHalf(GetParam())) continue;
    if (op == Op::kReduceMaxNumber && !ir::IsFloat(GetParam())) continue;
    outputs.push_back({b.Reduce(op, x, {0}, /*keepdim=*/false)});
    names.emplace_back(ir::Info(op).text);
  }
  if (!outputs.empty()) Check(b.Finish(outputs), names, std::vector<bool>(names.size(), true));
}

INSTANTIATE_TEST_SUITE_P(DTypes, Ops, testing::ValuesIn(kDTypes),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

}  // namespace
}  // namespace torch_lazy::codegen
