// SPDX-License-Identifier: Apache-2.0
// Every elementwise op, cast and reduction of every dtype, on special numbers too.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "test/codegen/op_graphs.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;

std::vector<double> Numbers(DType dtype) {
  std::vector<double> numbers = {0, 1, 2, 3, 7, 100, 0.5, 1.5, 2.5, -1, -2, -3, -7, -100, -0.5, -1.5, -2.5};
  if (!ir::IsFloat(dtype)) return numbers;
  for (const double x : {-0.0, 1e-40, -1e-40, 1e30, -1e30, 3e9, -3e9, 1e19, 0.1, 65519.0, 65520.0, 6e-8, 3e-8,
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
  void Check(const ir::Graph& graph, const std::vector<std::string>& names, const std::vector<bool>& inexact) {
    ir::EvaluateInputs inputs;
    AddPairs(GetParam(), &inputs);
    const absl::StatusOr<std::vector<ir::HostValue>> expected = ir::Evaluate(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const absl::StatusOr<Plan> plan = Compile(graph, OptionsFor({}));
    ASSERT_TRUE(plan.ok()) << plan.status();
    const std::vector<ir::HostValue> actual = RunPlan(graph, *plan, &inputs);
    ASSERT_EQ(actual.size(), names.size());
    for (size_t k = 0; k < names.size(); ++k) {
      const Tolerance tolerance = inexact[k] ? Tolerance{GetParam() == DType::kF64 ? 1e-15 : 3e-7, 1e-44} : Tolerance{};
      ExpectClose(actual[k], (*expected)[k], tolerance, names[k]);
    }
  }
};

TEST_P(Ops, CompiledAsEvaluated) {
  for (const OpGraph& ops : OpGraphs(GetParam())) Check(ops.graph, ops.names, ops.inexact);
}

INSTANTIATE_TEST_SUITE_P(DTypes, Ops, testing::ValuesIn(DTypesOfOps()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

}  // namespace
}  // namespace torch_lazy::codegen
