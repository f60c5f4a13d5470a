// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <algorithm>

namespace torch_lazy::ir {
namespace {

constexpr OpInfo kOps[] = {
#define X(name, text, kind, inputs, dtype_rule, dtypes, nanoseconds, traits) \
  {text, Kind::kind, inputs, DTypeRule::dtype_rule, DTypes::dtypes, nanoseconds, static_cast<uint8_t>(traits)},
    TORCH_LAZY_OP_LIST(X)
#undef X
};

int CountOp(const Graph& graph, Op op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [op](const Node& node) { return node.op == op; }));
}

int SymbolsIn(absl::Span<const Extent> extents) {
  int symbols = 0;
  for (Extent extent : extents) {
    if (extent.is_symbol()) symbols = std::max(symbols, extent.symbol() + 1);
  }
  return symbols;
}

constexpr std::pair<Op, Op> kShares[] = {{Op::kShareSum, Op::kSum},
                                         {Op::kShareMax, Op::kReduceMax},
                                         {Op::kShareMin, Op::kReduceMin},
                                         {Op::kShareAny, Op::kAny},
                                         {Op::kShareAll, Op::kAll}};

}  // namespace

const OpInfo& Info(Op op) { return kOps[static_cast<size_t>(op)]; }

bool Has(DTypes dtypes, DType dtype) {
  const bool is_real = !IsComplex(dtype) && !IsHalf(dtype);
  switch (dtypes) {
    case DTypes::kFloats:
      return is_real && IsFloat(dtype);
    case DTypes::kNumbers:
      return is_real && dtype != DType::kBool;
    case DTypes::kReals:
      return is_real;
    case DTypes::kNotComplex:
      return !IsComplex(dtype);
    case DTypes::kBits:
      return is_real && !IsFloat(dtype);
    case DTypes::kBool:
      return dtype == DType::kBool;
    case DTypes::kI64:
      return dtype == DType::kI64;
    case DTypes::kEvery:
      return true;
  }
  return false;
}

Op ReductionOf(Op partial) {
  for (const auto& [share, reduction] : kShares) {
    if (share == partial) return reduction;
  }
  return Op::kParam;
}

Op ShareOf(Op reduction) {
  for (const auto& [share, of] : kShares) {
    if (of == reduction) return share;
  }
  return Op::kParam;
}

int Graph::num_params() const { return CountOp(*this, Op::kParam); }
int Graph::num_scalars() const { return CountOp(*this, Op::kScalar); }

int Graph::num_symbols() const {
  int symbols = 0;
  for (const Node& node : nodes) {
    symbols = std::max(
        {symbols, SymbolsIn(node.type.dims), SymbolsIn(node.attrs.starts), SymbolsIn({&node.attrs.extent, 1})});
  }
  return symbols;
}

std::vector<int64_t> ExtentsOf(const Graph& graph, absl::Span<const int64_t> symbols) {
  std::vector<int64_t> numbers;
  for (const Node& node : graph.nodes) {
    for (const Extent extent : node.type.dims) numbers.push_back(extent.Value(symbols));
    for (const Extent extent : node.attrs.starts) numbers.push_back(extent.Value(symbols));
    numbers.push_back(node.attrs.extent.Value(symbols));
  }
  return numbers;
}

bool operator==(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.type == b.type && a.attrs == b.attrs;
}

bool operator==(const Graph& a, const Graph& b) { return a.nodes == b.nodes && a.outputs == b.outputs; }

}  // namespace torch_lazy::ir
