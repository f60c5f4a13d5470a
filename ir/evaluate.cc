// SPDX-License-Identifier: Apache-2.0
#include "ir/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ir/evaluate_elementwise.h"
#include "ir/evaluate_reduce.h"
#include "ir/host_walk.h"
#include "ir/philox.h"
#include "ir/round.h"

namespace torch_lazy::ir {
namespace {

using Operands = absl::Span<const HostValue* const>;

Sizes SizesOf(absl::Span<const Extent> dims, absl::Span<const int64_t> symbols) {
  Sizes sizes;
  for (Extent extent : dims) sizes.push_back(extent.Value(symbols));
  return sizes;
}

HostValue Leaf(const Node& node, Sizes sizes, absl::Span<const int64_t> symbols) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  if (node.op == Op::kIota) {
    Sizes strides(out.sizes.size(), 0);
    strides[node.attrs.dim] = 1;
    ForEach(out.sizes, strides, 0, [&](int64_t i, int64_t index) {
      if (IsFloat(out.dtype)) {
        out.floats[i] = RoundTo(out.dtype, static_cast<double>(index));
      } else {
        out.integers[i] = WrapTo(out.dtype, index);
      }
    });
  } else if (node.op == Op::kExtentOf) {
    out.integers[0] = node.attrs.extent.Value(symbols);
  } else if (IsFloat(out.dtype)) {
    out.floats[0] = node.attrs.f;
  } else {
    out.integers[0] = node.attrs.i;
  }
  return out;
}

void CastElement(const HostValue& from, int64_t i, HostValue& to) {
  if (IsFloat(to.dtype)) {
    // Integers go to f32 directly, not by way of f64, which would round twice.
    const double number = IsFloat(from.dtype)       ? from.floats[i]
                          : to.dtype == DType::kF64 ? static_cast<double>(from.integers[i])
                                                    : static_cast<float>(from.integers[i]);
    to.floats[i] = RoundTo(to.dtype, number);
  } else {
    to.integers[i] = IsFloat(from.dtype) ? FloatToInt(to.dtype, from.floats[i]) : WrapTo(to.dtype, from.integers[i]);
  }
}

void ComputeElement(const Node& node, Operands in, int64_t i, HostValue& out) {
  if (node.op == Op::kCast) return CastElement(*in[0], i, out);
  if (node.op == Op::kWhere) return CopyElement(*in[in[0]->integers[i] != 0 ? 1 : 2], i, out, i);
  if (node.op == Op::kBernoulli) {
    const auto number = [&](int k) { return in[k]->integers[i]; };
    const PhiloxLaunch launch = {number(1), number(2), number(3), number(4)};
    out.integers[i] = PhiloxAt(launch, number(0)) < number(5);
    return;
  }
  const bool floats = IsFloat(in[0]->dtype);
  if (Info(node.op).dtype_rule == DTypeRule::kCompare) {
    out.integers[i] = floats ? Compare(node.op, in[0]->floats[i], in[1]->floats[i])
                             : Compare(node.op, in[0]->integers[i], in[1]->integers[i]);
  } else if (floats) {
    absl::InlinedVector<double, 3> numbers;
    for (const HostValue* operand : in) numbers.push_back(operand->floats[i]);
    out.floats[i] = ElementOf(node.op, out.dtype, numbers);
  } else {
    absl::InlinedVector<int64_t, 3> numbers;
    for (const HostValue* operand : in) numbers.push_back(operand->integers[i]);
    out.integers[i] = ElementOf(node.op, out.dtype, numbers);
  }
}

HostValue Elementwise(const Node& node, Operands in, Sizes sizes) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  for (int64_t i = 0; i < out.num_elements(); ++i) ComputeElement(node, in, i, out);
  return out;
}

absl::StatusOr<HostValue> View(const Node& node, const HostValue& in, Sizes sizes, absl::Span<const int64_t> symbols) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  if (node.op == Op::kReshape) {
    if (out.num_elements() != in.num_elements()) {
      return absl::InvalidArgumentError(
          absl::StrCat("reshape: ", in.num_elements(), " elements do not fit ", out.num_elements()));
    }
    out.floats = in.floats;
    out.integers = in.integers;
    return out;
  }
  const Sizes in_strides = RowMajorStrides(in.sizes);
  Sizes strides(out.sizes.size());
  int64_t start = 0;
  for (size_t k = 0; k < strides.size(); ++k) {
    if (node.op == Op::kPermute) strides[k] = in_strides[node.attrs.dims[k]];
    if (node.op == Op::kExpand) strides[k] = in.sizes[k] == 1 ? 0 : in_strides[k];
    if (node.op == Op::kSlice) {
      const int64_t first = node.attrs.starts[k].Value(symbols);
      const int64_t last = first + (out.sizes[k] - 1) * node.attrs.steps[k];
      if (out.sizes[k] > 0 && (std::min(first, last) < 0 || std::max(first, last) >= in.sizes[k])) {
        return absl::OutOfRangeError(absl::StrCat("slice: elements ", first, " to ", last, " of ", in.sizes[k]));
      }
      strides[k] = in_strides[k] * node.attrs.steps[k];
      start += in_strides[k] * first;
    }
  }
  ForEach(out.sizes, strides, start, [&](int64_t i, int64_t from) { CopyElement(in, from, out, i); });
  return out;
}

absl::StatusOr<HostValue> Take(const Node& node, const HostValue& x, const HostValue& index) {
  HostValue out = MakeHostValue(node.type.dtype, index.sizes);
  const Sizes x_strides = RowMajorStrides(x.sizes);
  Sizes strides = x_strides;
  for (size_t k = 0; k < strides.size(); ++k) {
    if (static_cast<int64_t>(k) == node.attrs.dim || x.sizes[k] == 1) strides[k] = 0;
  }
  const int64_t extent = x.sizes[node.attrs.dim];
  absl::Status status;
  ForEach(out.sizes, strides, 0, [&](int64_t i, int64_t base) {
    const int64_t at = index.integers[i];
    if (at < 0 || at >= extent) {
      status = absl::OutOfRangeError(absl::StrCat("take: index ", at, " is out of range for ", extent));
    } else {
      CopyElement(x, base + at * x_strides[node.attrs.dim], out, i);
    }
  });
  if (!status.ok()) return status;
  return out;
}

absl::StatusOr<HostValue> Put(const Node& node, const HostValue& x, const HostValue& rows, const HostValue& index) {
  HostValue out = x;
  const Sizes strides = RowMajorStrides(x.sizes);
  const int64_t dim = node.attrs.dim, extent = x.sizes[dim];
  for (int64_t k = 0; k < rows.sizes[dim]; ++k) {
    const int64_t at = index.integers[k];
    if (at < 0 || at >= extent)
      return absl::OutOfRangeError(absl::StrCat("put: index ", at, " is out of range for ", extent));
  }
  const int64_t inner = strides[dim], count = rows.sizes[dim];
  ForEach(rows.sizes, strides, 0, [&](int64_t i, int64_t to) {
    const int64_t k = i / inner % count;
    CopyElement(rows, i, out, to + (index.integers[k] - k) * inner);
  });
  return out;
}

absl::StatusOr<HostValue> Concat(const Node& node, Operands in, Sizes sizes) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  const Sizes strides = RowMajorStrides(out.sizes);
  int64_t start = 0;
  for (const HostValue* operand : in) {
    const int64_t extent = operand->sizes[node.attrs.dim];
    if (start + extent > out.sizes[node.attrs.dim]) break;
    ForEach(operand->sizes, strides, start * strides[node.attrs.dim],
            [&](int64_t i, int64_t to) { CopyElement(*operand, i, out, to); });
    start += extent;
  }
  if (start == out.sizes[node.attrs.dim]) return out;
  return absl::InvalidArgumentError(
      absl::StrCat("concat: operands do not make ", out.sizes[node.attrs.dim], " elements"));
}

// A product for each batch, each row plus the third operand if there is one; or their sum.
HostValue Matmul(Op op, Operands in, Sizes sizes) {
  const bool sums = op == Op::kMatmulSum;
  const HostValue &x = *in[0], &y = *in[1];
  HostValue out = MakeHostValue(x.dtype, std::move(sizes));
  const int64_t m = out.sizes[out.sizes.size() - 2], n = out.sizes.back(), k = x.sizes.back();
  const int64_t batches = x.sizes.size() == 3 ? x.sizes[0] : 1;
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const int64_t row = i / n % m, column = i % n;
    const int64_t first = sums ? 0 : i / (m * n), end = sums ? batches : first + 1;
    double sum = in.size() > 2 ? in[2]->floats[column] : 0;
    for (int64_t batch = first; batch < end; ++batch) {
      for (int64_t p = 0; p < k; ++p)
        sum += x.floats[(batch * m + row) * k + p] * y.floats[(batch * k + p) * n + column];
    }
    out.floats[i] = RoundTo(out.dtype, op == Op::kMatmulBiasRelu && sum < 0 ? 0 : sum);
  }
  return out;
}

// Each row of the query by itself: exp(score - greatest score) over their sum, by the values.
HostValue Attend(Operands in, Sizes sizes) {
  const HostValue &query = *in[0], &keys = *in[1], &values = *in[2];
  HostValue out = MakeHostValue(keys.dtype, std::move(sizes));
  const int64_t rows = out.sizes[2], width = out.sizes[3], length = keys.sizes[2];
  std::vector<double> scores(static_cast<size_t>(length));
  for (int64_t row = 0; row * width < out.num_elements(); ++row) {
    const int64_t head = row / rows;
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t l = 0; l < length; ++l) {
      double score = in.size() > 3 ? in[3]->floats[row * length + l] : 0;
      for (int64_t d = 0; d < width; ++d)
        score += query.floats[row * width + d] * keys.floats[(head * length + l) * width + d];
      scores[static_cast<size_t>(l)] = score;
      most = score > most ? score : most;
    }
    for (double& score : scores)
      sum += score = std::isinf(most) && most < 0 && !std::isnan(score) ? 0 : std::exp(score - most);
    for (int64_t d = 0; d < width; ++d) {
      double of_values = 0;
      for (int64_t l = 0; l < length; ++l)
        of_values += scores[static_cast<size_t>(l)] * values.floats[(head * length + l) * width + d];
      out.floats[row * width + d] = RoundTo(out.dtype, sum == 0 ? 0 : of_values / sum);
    }
  }
  return out;
}

HostValue Stack(const Node& node, Operands in, Sizes sizes) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  const Sizes out_strides = RowMajorStrides(out.sizes);
  Sizes strides = out_strides;
  strides.erase(strides.begin() + node.attrs.dim);
  for (size_t k = 0; k < in.size(); ++k) {
    ForEach(in[k]->sizes, strides, static_cast<int64_t>(k) * out_strides[node.attrs.dim],
            [&](int64_t i, int64_t to) { CopyElement(*in[k], i, out, to); });
  }
  return out;
}

// The results of calls stand beside the nodes' values, for `result`.
class Evaluator {
 public:
  Evaluator(const Graph& graph, const EvaluateInputs& inputs) : graph_(graph), inputs_(inputs) {}

  absl::StatusOr<std::vector<HostValue>> Run() {
    values_.resize(graph_.nodes.size());
    results_.resize(graph_.nodes.size());
    for (size_t v = 0; v < graph_.nodes.size(); ++v) {
      LAZY_ASSIGN_OR_RETURN(values_[v], ValueOf(static_cast<Value>(v)));
    }
    std::vector<HostValue> outputs;
    for (const Output& output : graph_.outputs) outputs.push_back(values_[output.value]);
    return outputs;
  }

 private:
  absl::StatusOr<HostValue> ValueOf(Value v) {
    const Node& node = graph_.node(v);
    if (node.op == Op::kParam) return Given(node, inputs_.params);
    if (node.op == Op::kScalar) return Given(node, inputs_.scalars);
    if (node.op == Op::kCall) return RunCall(v, node);
    if (node.op == Op::kResult) return results_[node.inputs[0]][node.attrs.index];
    std::vector<const HostValue*> operands;
    for (Value input : node.inputs) operands.push_back(&values_[input]);
    return EvaluateNode(node, operands, inputs_.symbols);
  }

  absl::StatusOr<HostValue> Given(const Node& node, const std::vector<HostValue>& given) {
    const auto index = static_cast<size_t>(node.attrs.index);
    if (index < given.size() && given[index].dtype == node.type.dtype &&
        given[index].sizes == SizesOf(node.type.dims, inputs_.symbols)) {
      return given[index];
    }
    return absl::InvalidArgumentError(
        absl::StrCat(Info(node.op).text, " ", index, " is missing or not ", node.type.ToString()));
  }

  absl::StatusOr<HostValue> RunCall(Value v, const Node& node) {
    std::vector<HostValue> operands;
    for (Value input : node.inputs) operands.push_back(values_[input]);
    if (!inputs_.call) return absl::UnimplementedError(absl::StrCat("call: nobody runs ", node.attrs.callee));
    LAZY_ASSIGN_OR_RETURN(results_[v], inputs_.call(node, operands));
    if (results_[v].size() != node.attrs.inout.size()) {
      return absl::InternalError(absl::StrCat("call: ", node.attrs.callee, " gave ", results_[v].size(), " results"));
    }
    return results_[v].empty() ? MakeHostValue(DType::kBool, {}) : results_[v][0];
  }

  const Graph& graph_;
  const EvaluateInputs& inputs_;
  std::vector<HostValue> values_;
  std::vector<std::vector<HostValue>> results_;
};

}  // namespace

absl::StatusOr<HostValue> EvaluateNode(const Node& node, Operands operands, absl::Span<const int64_t> symbols) {
  Sizes sizes = SizesOf(node.type.dims, symbols);
  switch (Info(node.op).kind) {
    case Kind::kLeaf:
      return Leaf(node, std::move(sizes), symbols);
    case Kind::kElementwise:
      return Elementwise(node, operands, std::move(sizes));
    case Kind::kView:
      return View(node, *operands[0], std::move(sizes), symbols);
    case Kind::kReduce:
      if (node.op == Op::kArgMax || node.op == Op::kArgMin) return ArgReduce(node, *operands[0], std::move(sizes));
      return Reduce(node, *operands[0], std::move(sizes));
    case Kind::kPartial:
      return Share(node, *operands[0], std::move(sizes));
    case Kind::kIndexed:
      return Take(node, *operands[0], *operands[1]);
    case Kind::kPut:
      return Put(node, *operands[0], *operands[1], *operands[2]);
    case Kind::kConcat:
      if (node.op == Op::kStack) return Stack(node, operands, std::move(sizes));
      return Concat(node, operands, std::move(sizes));
    case Kind::kMatmul:
      return Matmul(node.op, operands, std::move(sizes));
    case Kind::kAttend:
      return Attend(operands, std::move(sizes));
    case Kind::kCall:
      break;
  }
  return absl::InternalError(absl::StrCat("evaluate: ", Info(node.op).text, " is not evaluated alone"));
}

absl::StatusOr<std::vector<HostValue>> Evaluate(const Graph& graph, const EvaluateInputs& inputs) {
  return Evaluator(graph, inputs).Run();
}

}  // namespace torch_lazy::ir
