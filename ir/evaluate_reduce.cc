// SPDX-License-Identifier: Apache-2.0
#include "ir/evaluate_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/evaluate_elementwise.h"
#include "ir/round.h"

namespace torch_lazy::ir {
namespace {

// Folds one element into an accumulator; f64 for floats.
double Accumulate(Op op, double sum, double x) {
  if (op == Op::kSum) return sum + x;
  if (op == Op::kProd) return sum * x;
  if (op == Op::kReduceMaxNumber) return std::fmax(sum, x);
  const double both[] = {sum, x};
  return ElementOf(op == Op::kReduceMax ? Op::kMax : Op::kMin, DType::kF64, both);
}
int64_t Accumulate(Op op, DType dtype, int64_t sum, int64_t x) {
  const int64_t both[] = {sum, x};
  if (op == Op::kSum) return ElementOf(Op::kAdd, dtype, both);
  if (op == Op::kProd) return ElementOf(Op::kMul, dtype, both);
  return op == Op::kAll || op == Op::kReduceMin ? std::min(sum, x) : std::max(sum, x);
}

int64_t LeastInteger(DType dtype) {
  if (dtype == DType::kBool || dtype == DType::kU8) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * SizeBytes(dtype));
}
int64_t GreatestInteger(DType dtype) {
  if (dtype == DType::kBool) return 1;
  return dtype == DType::kU8 ? 255 : -1 - LeastInteger(dtype);
}

// What a reduction of nothing gives.
void Fill(HostValue& out, Op op) {
  const double inf = std::numeric_limits<double>::infinity();
  const bool one = op == Op::kProd || op == Op::kAll;
  const double number = op == Op::kReduceMax || op == Op::kReduceMaxNumber ? -inf : op == Op::kReduceMin ? inf : one;
  const int64_t integer = op == Op::kReduceMax   ? LeastInteger(out.dtype)
                          : op == Op::kReduceMin ? GreatestInteger(out.dtype)
                                                 : one;
  std::fill(out.floats.begin(), out.floats.end(), number);
  std::fill(out.integers.begin(), out.integers.end(), integer);
}

// Strides into the reduced value, 0 along reduced dims; the same with keepdim or without.
Sizes ReducedStrides(const Sizes& sizes, const Ints& reduced) {
  Sizes strides(sizes.size(), 0);
  int64_t stride = 1;
  for (size_t k = sizes.size(); k-- > 0;) {
    if (std::binary_search(reduced.begin(), reduced.end(), static_cast<int64_t>(k))) continue;
    strides[k] = stride;
    stride *= sizes[k];
  }
  return strides;
}

bool Beats(Op op, double x, double best) {
  if (std::isnan(best)) return false;
  return std::isnan(x) || Compare(op == Op::kArgMax ? Op::kGt : Op::kLt, x, best);
}
bool Beats(Op op, int64_t x, int64_t best) { return Compare(op == Op::kArgMax ? Op::kGt : Op::kLt, x, best); }

}  // namespace

HostValue Reduce(const Node& node, const HostValue& in, Sizes sizes) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  Fill(out, node.op);
  ForEach(in.sizes, ReducedStrides(in.sizes, node.attrs.dims), 0, [&](int64_t i, int64_t to) {
    if (IsFloat(out.dtype)) {
      out.floats[to] = Accumulate(node.op, out.floats[to], in.floats[i]);
    } else {
      out.integers[to] = Accumulate(node.op, out.dtype, out.integers[to], in.integers[i]);
    }
  });
  for (double& number : out.floats) number = RoundTo(out.dtype, number);
  return out;
}

HostValue Share(const Node& node, const HostValue& in, Sizes sizes) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  const Op op = ReductionOf(node.op);
  Fill(out, op);
  const int64_t shares = out.sizes[0], results = out.num_elements() / shares;
  const int64_t of_each = results == 0 ? 0 : in.num_elements() / results;
  const bool are_innermost = node.attrs.dims.back() + 1 == static_cast<int64_t>(in.sizes.size());
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const int64_t result = are_innermost ? i / of_each : i % results;
    const int64_t number = are_innermost ? i % of_each : i / results;
    const int64_t share = ((number + 1) * shares - 1) / of_each;
    const int64_t to = share * results + result;
    if (IsFloat(out.dtype))
      out.floats[to] = Accumulate(op, out.floats[to], in.floats[i]);
    else
      out.integers[to] = Accumulate(op, out.dtype, out.integers[to], in.integers[i]);
  }
  return out;
}

absl::StatusOr<HostValue> ArgReduce(const Node& node, const HostValue& in, Sizes sizes) {
  HostValue out = MakeHostValue(node.type.dtype, std::move(sizes));
  const int64_t dim = node.attrs.dims[0];
  if (in.sizes[dim] == 0 && out.num_elements() > 0) return absl::InvalidArgumentError("argmax: of no elements");
  const Sizes strides = RowMajorStrides(in.sizes);
  Sizes outer = in.sizes;
  outer[dim] = 1;
  ForEach(outer, strides, 0, [&](int64_t to, int64_t first) {
    int64_t best = 0;
    for (int64_t k = 1; k < in.sizes[dim]; ++k) {
      const int64_t at = first + k * strides[dim], best_at = first + best * strides[dim];
      const bool wins = IsFloat(in.dtype) ? Beats(node.op, in.floats[at], in.floats[best_at])
                                          : Beats(node.op, in.integers[at], in.integers[best_at]);
      if (wins) best = k;
    }
    out.integers[to] = best;
  });
  return out;
}

}  // namespace torch_lazy::ir
