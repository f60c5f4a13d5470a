// SPDX-License-Identifier: Apache-2.0
#include "test/codegen/run_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/registry.h"
#include "base/check.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/round.h"

namespace torch_lazy::codegen {
namespace {

std::vector<int64_t> SizesOf(const ir::Type& type, absl::Span<const int64_t> symbols) {
  std::vector<int64_t> sizes;
  for (const ir::Extent extent : type.dims) sizes.push_back(extent.Value(symbols));
  return sizes;
}

class PlanRun {
 public:
  PlanRun(const ir::Graph& graph, const Plan& plan, ir::EvaluateInputs* inputs)
      : graph_(graph),
        plan_(plan),
        inputs_(inputs),
        symbols_(NumbersOf(plan.padded_extents, inputs->symbols)),
        module_(backends::Get().Compile(plan.kernels, /*wait=*/true)) {}

  std::vector<ir::HostValue> Run() {
    EXPECT_TRUE(module_->status().ok()) << module_->status();
    if (!module_->status().ok()) return {};
    for (const BufferSpec& buffer : plan_.buffers) {
      memory_.emplace_back(static_cast<size_t>(ir::SizeBytes(buffer.type, symbols_)) + 64);
      if (buffer.kind == BufferSpec::Kind::kParam) ir::ToBytes(inputs_->params[buffer.index], memory_.back().data());
    }
    for (const Step& step : plan_.steps) {
      if (step.kind == Step::Kind::kLaunch) {
        Launch(step);
      } else if (step.kind == Step::Kind::kMatmul) {
        Multiply(step);
      } else {
        Call(step);
      }
      for (const int32_t freed : step.frees) std::fill(memory_[freed].begin(), memory_[freed].end(), char{0x5a});
    }
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const BufferSpec& buffer = plan_.buffers[b];
      if (buffer.kind == BufferSpec::Kind::kParam) inputs_->params[buffer.index] = Value(b, buffer.type);
    }
    std::vector<ir::HostValue> outputs;
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      outputs.push_back(Value(plan_.outputs[k], graph_.type(graph_.outputs[k].value)));
    }
    return outputs;
  }

 private:
  ir::HostValue Value(size_t buffer, const ir::Type& type) const {
    return ir::FromBytes(type.dtype, SizesOf(type, symbols_), memory_[buffer].data());
  }

  void Launch(const Step& step) {
    struct Numbers {
      std::vector<void*> buffers;
      std::vector<int64_t> extents;
      std::vector<double> scalars;
    };
    std::vector<Numbers> numbers(step.instances.size());
    std::vector<backends::BoundInstance> bound;
    for (size_t k = 0; k < step.instances.size(); ++k) {
      const Instance& instance = step.instances[k];
      for (size_t i = 0; i < instance.buffers.size(); ++i) {
        const int32_t buffer = instance.buffers[i];
        const int64_t offset = instance.offsets[i].Value(symbols_);
        numbers[k].buffers.push_back(memory_[buffer].data() + offset * ir::SizeBytes(plan_.buffers[buffer].type.dtype));
      }
      for (const Polynomial& extent : instance.extents) numbers[k].extents.push_back(extent.Value(symbols_));
      for (const int32_t scalar : instance.scalars) {
        const ir::HostValue& value = inputs_->scalars[scalar];
        numbers[k].scalars.push_back(value.floats.empty() ? std::bit_cast<double>(value.integers[0]) : value.floats[0]);
      }
      backends::BoundInstance b;
      b.function = module_->Function(instance.kernel);
      b.buffers = numbers[k].buffers;
      b.extents = numbers[k].extents;
      b.scalars = numbers[k].scalars;
      b.iterations = ir::NumElements(instance.range, symbols_);
      b.grain = instance.grain;
      b.cost_per_iteration = 1000;  // so that tests run in pieces
      b.scratch_bytes = ScratchBytes(instance, symbols_);
      bound.push_back(b);
    }
    const absl::Status launched = backends::Get().Launch(bound);
    LAZY_CHECK(launched.ok(), launched.message());
  }

  char* At(const BoundMatrix& matrix, ir::DType dtype, absl::Span<const int64_t> index) {
    int64_t element = matrix.offset.Value(symbols_);
    for (size_t k = 0; k < index.size(); ++k) element += index[k] * matrix.strides[k].Value(symbols_);
    return memory_[matrix.buffer].data() + element * ir::SizeBytes(dtype);
  }

  // Element by element: a result that lies where an operand does comes out wrong.
  void Multiply(const Step& step) {
    ASSERT_TRUE(step.dtype == ir::DType::kF32 || ir::IsHalf(step.dtype));
    std::vector<int64_t> sizes;
    for (const Monomial& size : step.sizes) sizes.push_back(Polynomial(size).Value(symbols_));
    const bool has_batch = sizes.size() == 4;
    const int64_t batches = has_batch ? sizes[0] : 1, rows = sizes[has_batch], inner = sizes[has_batch + 1],
                  columns = sizes[has_batch + 2];
    const auto at = [&](const BoundMatrix& matrix, int64_t b, int64_t i, int64_t j) {
      std::vector<int64_t> index = {i, j};
      if (matrix.strides.size() == 3) index.insert(index.begin(), b);
      if (matrix.strides.size() == 1) index.erase(index.begin());
      return At(matrix, step.dtype, index);
    };
    const auto number = [&](const BoundMatrix& matrix, int64_t b, int64_t i, int64_t j) -> double {
      const char* const place = at(matrix, b, i, j);
      if (!ir::IsHalf(step.dtype)) return *reinterpret_cast<const float*>(place);
      return ir::FromHalfBits(step.dtype, *reinterpret_cast<const uint16_t*>(place));
    };
    const bool adds = step.bias.buffer >= 0;
    const int64_t results = step.sums ? 1 : batches, terms = step.sums ? batches : 1;
    for (int64_t r = 0; r < results; ++r) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          double sum = adds ? number(step.bias, r, 0, j) : 0;
          for (int64_t b = r; b < r + terms; ++b) {
            for (int64_t p = 0; p < inner; ++p) sum += number(step.x, b, i, p) * number(step.y, b, p, j);
          }
          ir::ToBytes(ir::MakeFloats(step.dtype, {}, {step.is_relu && sum < 0 ? 0 : sum}), at(step.result, r, i, j));
        }
      }
    }
  }

  // The callee gets copies and gives results; one that takes an operand's buffer is written there.
  void Call(const Step& step) {
    const ir::Node& node = graph_.node(step.call);
    std::vector<ir::HostValue> operands;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      operands.push_back(Value(step.operands[k], graph_.type(node.inputs[k])));
    const absl::StatusOr<std::vector<ir::HostValue>> results = inputs_->call(node, operands);
    ASSERT_TRUE(results.ok()) << results.status();
    for (size_t k = 0; k < results->size(); ++k) {
      const int64_t operand = node.attrs.inout[k];
      if (operand >= 0) {
        EXPECT_EQ(step.results[k], step.operands[operand]);
        EXPECT_EQ(std::count(step.operands.begin(), step.operands.end(), step.results[k]), 1);
      }
      const ir::HostValue& result = (*results)[k];
      const size_t bytes = static_cast<size_t>(result.num_elements() * ir::SizeBytes(result.dtype));
      std::vector<char>& memory = memory_[step.results[k]];
      if (memory.size() < bytes) memory.resize(bytes + 64);
      ir::ToBytes(result, memory.data());
    }
  }

  const ir::Graph& graph_;
  const Plan& plan_;
  ir::EvaluateInputs* const inputs_;
  const std::vector<int64_t> symbols_;
  const std::shared_ptr<backends::Module> module_;
  std::vector<std::vector<char>> memory_;
};

}  // namespace

CompileOptions OptionsFor(std::vector<int64_t> seen_extents) {
  CompileOptions options;
  options.target = backends::Get().target();
  options.seen_extents = std::move(seen_extents);
  return options;
}

std::vector<ir::HostValue> RunPlan(const ir::Graph& graph, const Plan& plan, ir::EvaluateInputs* inputs) {
  return PlanRun(graph, plan, inputs).Run();
}

void ExpectClose(const ir::HostValue& actual, const ir::HostValue& expected, Tolerance tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.sizes, expected.sizes) << what;
  EXPECT_EQ(actual.integers, expected.integers) << what;
  ASSERT_EQ(actual.floats.size(), expected.floats.size()) << what;
  int failures = 0;
  for (size_t k = 0; k < actual.floats.size() && failures < 3; ++k) {
    const double a = actual.floats[k], e = expected.floats[k];
    if ((std::isnan(a) && std::isnan(e)) || (a == e && std::signbit(a) == std::signbit(e))) continue;
    const bool close = std::abs(a - e) <= tolerance.absolute + tolerance.relative * std::abs(e);
    if (!close) ++failures;
    EXPECT_TRUE(close) << what << ": element " << k << " is " << a << " instead of " << e;
  }
}

ir::EvaluateInputs RandomInputs(const ir::Graph& graph, const std::vector<int64_t>& symbols, uint32_t seed) {
  ir::EvaluateInputs inputs;
  inputs.symbols = symbols;
  std::mt19937 random(seed);
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::Op::kParam && node.op != ir::Op::kScalar) continue;
    const std::vector<int64_t> sizes = SizesOf(node.type, symbols);
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    std::vector<double> floats;
    std::vector<int64_t> integers;
    for (int64_t k = 0; k < count; ++k) {
      floats.push_back(std::uniform_real_distribution<double>(-2, 2)(random));
      integers.push_back(static_cast<int64_t>(random() % 7) - (node.type.dtype == ir::DType::kI64 ? 0 : 3));
    }
    ir::HostValue value = ir::IsFloat(node.type.dtype) ? ir::MakeFloats(node.type.dtype, sizes, floats)
                                                       : ir::MakeIntegers(node.type.dtype, sizes, integers);
    (node.op == ir::Op::kParam ? inputs.params : inputs.scalars).push_back(std::move(value));
  }
  return inputs;
}

// The plan must be right for all sizes, whatever the first ones were.
void CheckGraphFor(const std::vector<int64_t>& seen_extents, const ir::Graph& graph,
                   const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance, uint32_t seed,
                   const CallFunction& call) {
  const absl::StatusOr<Plan> plan = Compile(graph, OptionsFor(seen_extents));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const std::vector<int64_t>& numbers : symbols) {
    const std::string what =
        absl::StrCat("sizes ", absl::StrJoin(numbers, ", "), ", seed ", seed, "\n", ir::Print(graph), plan->ToString());
    ir::EvaluateInputs inputs = RandomInputs(graph, numbers, seed);
    inputs.call = call;
    const absl::StatusOr<std::vector<ir::HostValue>> expected = ir::Evaluate(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status() << "\n" << what;
    const std::vector<ir::HostValue> actual = RunPlan(graph, *plan, &inputs);
    ASSERT_EQ(actual.size(), expected->size()) << what;
    for (size_t k = 0; k < actual.size(); ++k) {
      ExpectClose(actual[k], (*expected)[k], tolerance, absl::StrCat("output ", k, ", ", what));
      const int32_t into = graph.outputs[k].into;
      if (into >= 0)
        ExpectClose(inputs.params[into], (*expected)[k], tolerance, absl::StrCat("parameter ", into, ", ", what));
      if (testing::Test::HasFailure()) return;
    }
  }
}

void CheckGraph(const ir::Graph& graph, const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance,
                uint32_t seed, const CallFunction& call) {
  CheckGraphFor({}, graph, symbols, tolerance, seed, call);
  if (!testing::Test::HasFailure()) CheckGraphFor(LargeExtents(), graph, symbols, tolerance, seed, call);
}

void CheckText(absl::string_view text, const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance) {
  const absl::StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  CheckGraph(*graph, symbols, tolerance);
}

void CheckTextFor(const std::vector<int64_t>& seen_extents, absl::string_view text,
                  const std::vector<std::vector<int64_t>>& symbols, Tolerance tolerance) {
  const absl::StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  CheckGraphFor(seen_extents, *graph, symbols, tolerance);
}

Plan PlanOf(absl::string_view text, std::vector<int64_t> seen_extents) {
  const absl::StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  absl::StatusOr<Plan> plan = Compile(*graph, OptionsFor(std::move(seen_extents)));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan();
}

bool HasText(const Plan& plan, absl::string_view words) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(),
                     [&](const Kernel& kernel) { return absl::StrContains(kernel.source, words); });
}

}  // namespace torch_lazy::codegen
