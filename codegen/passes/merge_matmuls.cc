// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/merge_matmuls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "codegen/plan/seen_sizes.h"
#include "ir/builder.h"
#include "ir/passes/passes.h"

namespace torch_lazy::codegen {
namespace {

using ir::Extent;
using ir::Op;
using ir::Value;

constexpr size_t kFewest = 4;               // products that are worth it, and so many are stacked
constexpr double kMostHeld = 4 << 20;       // bytes of a product of the whole
constexpr double kMostStacked = 128 << 10;  // bytes; eager has given back each term's by then
constexpr double kSmall = 16e6;             // operations of one product; larger ones are fast alone
constexpr double kMostUnused = 0.25;        // of the whole that nobody takes a slice of

// The rows of a matrix, or an index of a value of three dims along one of the first two.
struct Part {
  Value whole;
  int dim;
  const ir::Node* slice;
};

std::optional<Part> PartOf(const ir::Graph& graph, Value v) {
  const bool is_reshaped = graph.node(v).op == Op::kReshape && graph.type(v).rank() == 2;
  const ir::Node& slice = graph.node(is_reshaped ? graph.node(v).inputs[0] : v);
  if (slice.op != Op::kSlice || slice.type.rank() != (is_reshaped ? 3 : 2)) return std::nullopt;
  const ir::Dims& dims = graph.type(slice.inputs[0]).dims;
  int part = -1;  // the dim of which it is a part
  for (int k = 0; k < slice.type.rank(); ++k) {
    if (slice.attrs.steps[k] != 1) return std::nullopt;
    if (slice.type.dims[k] == dims[k] && slice.attrs.starts[k] == Extent::Constant(0)) continue;
    if (part >= 0 || k + 1 == slice.type.rank()) return std::nullopt;
    part = k;
  }
  if (part < 0) return std::nullopt;
  if (is_reshaped) {
    ir::Dims left = slice.type.dims;
    left.erase(left.begin() + part);
    if (!slice.type.dims[part].is_one() || left != graph.type(v).dims) return std::nullopt;
  }
  return Part{slice.inputs[0], part, &slice};
}

double Operations(const ir::Graph& graph, const ir::Node& matmul, const ir::PassContext& context) {
  const double inner = SeenSize(ProductOf({graph.type(matmul.inputs[0]).dims.back()}), context.seen_extents);
  return 2 * inner * SeenSize(ProductOf(matmul.type.dims), context.seen_extents);
}

// Products of slices of one value with the same right operand.
class SharedOperands {
 public:
  SharedOperands(const ir::Graph& graph, const ir::PassContext& context) : graph_(graph), context_(context) {
    for (const ir::Node& node : graph.nodes) {
      const std::optional<Key> key = KeyOf(node);
      if (key.has_value()) ++counts_[*key];
    }
  }

  // The node's part of the product of the whole; kNoValue if it stays alone. `moved`: where nodes went.
  Value Rewrite(ir::Builder& b, const ir::Node& node, const std::vector<Value>& moved) {
    const std::optional<Key> key = KeyOf(node);
    if (!key.has_value() || !IsWorthIt(*key, node)) return ir::kNoValue;
    const auto [known, is_new] = products_.try_emplace(*key, ir::kNoValue);
    if (is_new) known->second = Whole(b, moved[std::get<0>(*key)], moved[std::get<2>(*key)]);
    const ir::Node& slice = *PartOf(graph_, node.inputs[0])->slice;
    ir::Dims sizes = slice.type.dims;
    sizes.back() = node.type.dims.back();
    return b.Reshape(b.Slice(known->second, slice.attrs.starts, sizes, slice.attrs.steps), node.type.dims);
  }

 private:
  using Key = std::tuple<Value, int, Value>;  // whole, dim, right operand

  static Value Whole(ir::Builder& b, Value x, Value y) {
    if (b.rank(x) == 2) return b.Matmul(x, y);
    ir::Dims dims = b.dims(y);
    dims.insert(dims.begin(), Extent::Constant(1));
    y = b.Reshape(y, dims);
    dims[0] = b.dims(x)[0];
    return b.Matmul(x, b.Expand(y, dims));
  }

  std::optional<Key> KeyOf(const ir::Node& node) const {
    if (node.op != Op::kMatmul || node.type.rank() != 2) return std::nullopt;
    const std::optional<Part> part = PartOf(graph_, node.inputs[0]);
    if (!part.has_value()) return std::nullopt;
    return Key(part->whole, part->dim, node.inputs[1]);
  }

  bool IsWorthIt(const Key& key, const ir::Node& node) const {
    const auto [whole, dim, right] = key;
    const double count = static_cast<double>(counts_.at(key));
    const double parts = SeenBytes(graph_.type(whole), context_.seen_extents) /
                         SeenBytes(graph_.type(node.inputs[0]), context_.seen_extents);
    return count >= kFewest && count >= parts * (1 - kMostUnused) && Operations(graph_, node, context_) <= kSmall &&
           parts * SeenBytes(node.type, context_.seen_extents) <= kMostHeld;
  }

  const ir::Graph& graph_;
  const ir::PassContext& context_;
  std::map<Key, size_t> counts_;
  std::map<Key, Value> products_;
};

// Sums of many products, or of many sums, of equal types.
class LongSums {
 public:
  LongSums(const ir::Graph& graph, const ir::PassContext& context)
      : graph_(graph), context_(context), uses_(graph.nodes.size(), 0), inner_(graph.nodes.size(), false) {
    for (const ir::Node& node : graph.nodes) {
      for (const Value input : node.inputs) ++uses_[input];
    }
    for (const ir::Output& output : graph.outputs) ++uses_[output.value];
    for (const ir::Node& node : graph.nodes) {
      if (node.op != Op::kAdd) continue;
      for (const Value input : node.inputs) inner_[input] = uses_[input] == 1;
    }
  }

  // The sum of the stacked terms; kNoValue if the node is no such sum, or part of a longer one.
  Value Rewrite(ir::Builder& b, Value v, const std::vector<Value>& moved) {
    if (graph_.node(v).op != Op::kAdd || inner_[v]) return ir::kNoValue;
    std::vector<Value> terms;
    AddTerms(v, &terms);
    if (terms.size() < kFewest || !AreAlike(terms)) return ir::kNoValue;
    std::sort(terms.begin(), terms.end());
    const size_t stacks = terms.size() / kFewest;
    Value sum = ir::kNoValue;
    for (size_t k = 0; k < stacks; ++k) {
      const std::vector<Value> some(terms.begin() + static_cast<int64_t>(terms.size() * k / stacks),
                                    terms.begin() + static_cast<int64_t>(terms.size() * (k + 1) / stacks));
      const Value of_some = SumOf(b, some, moved);
      sum = sum == ir::kNoValue ? of_some : b.Add(sum, of_some);
    }
    return sum;
  }

 private:
  Value SumOf(ir::Builder& b, const std::vector<Value>& terms, const std::vector<Value>& moved) const {
    const ir::Node& first = graph_.node(terms[0]);
    if (first.op != Op::kSum) return b.MatmulSum(Stacked(b, terms, 0, moved), Stacked(b, terms, 1, moved));
    ir::Ints dims = {0};
    for (const int64_t dim : first.attrs.dims) dims.push_back(dim + 1);
    return b.Reshape(b.Sum(Stacked(b, terms, 0, moved), dims, /*keepdim=*/false), first.type.dims);
  }

  double BytesOf(const ir::Node& term) const {
    double bytes = 0;
    for (const Value input : term.inputs) bytes += SeenBytes(graph_.type(input), context_.seen_extents);
    return bytes;
  }

  void AddTerms(Value v, std::vector<Value>* terms) {
    for (const Value input : graph_.node(v).inputs) {
      if (graph_.node(input).op == Op::kAdd && inner_[input])
        AddTerms(input, terms);
      else
        terms->push_back(input);
    }
  }

  bool AreAlike(const std::vector<Value>& terms) const {
    const ir::Node& first = graph_.node(terms[0]);
    const bool is_matmul = first.op == Op::kMatmul && first.type.rank() == 2;
    if (!is_matmul && first.op != Op::kSum) return false;
    for (const Value term : terms) {
      const ir::Node& node = graph_.node(term);
      if (node.op != first.op || node.type != first.type || uses_[term] != 1 || node.attrs != first.attrs) return false;
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (graph_.type(node.inputs[k]) != graph_.type(first.inputs[k])) return false;
      }
    }
    return BytesOf(first) * kFewest <= kMostStacked && (!is_matmul || Operations(graph_, first, context_) <= kSmall);
  }

  // Operand k of the terms; what is transposed is stacked as it was before.
  Value Stacked(ir::Builder& b, const std::vector<Value>& terms, size_t k, const std::vector<Value>& moved) const {
    std::vector<Value> parts, plain;
    for (const Value term : terms) {
      const Value operand = graph_.node(term).inputs[k];
      parts.push_back(moved[operand]);
      const ir::Node& node = graph_.node(operand);
      if (node.op == Op::kPermute) plain.push_back(moved[node.inputs[0]]);
    }
    if (plain.size() < parts.size() || b.rank(parts[0]) != 2) return b.Stack(parts, 0);
    return b.Permute(b.Stack(plain, 0), {0, 2, 1});
  }

  const ir::Graph& graph_;
  const ir::PassContext& context_;
  std::vector<int> uses_;
  std::vector<bool> inner_;  // those whose one reader is an add
};

}  // namespace

ir::Graph MergeMatmuls(const ir::Graph& graph, ir::PassContext* context) {
  const auto is_matmul = [](const ir::Node& node) { return node.op == Op::kMatmul; };
  if (static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), is_matmul)) < kFewest) return graph;
  SharedOperands shared(graph, *context);
  LongSums sums(graph, *context);
  ir::Builder b(graph.name);
  b.Reserve(graph.nodes.size());
  std::vector<Value> moved;  // where each node went
  for (Value v = 0; v < static_cast<Value>(graph.nodes.size()); ++v) {
    b.set_origin(graph.node(v).origin);
    Value value = shared.Rewrite(b, graph.node(v), moved);
    if (value == ir::kNoValue) value = sums.Rewrite(b, v, moved);
    if (value == ir::kNoValue) {
      ir::Node node = graph.node(v);
      for (Value& input : node.inputs) input = moved[input];
      value = b.Append(std::move(node));
    }
    moved.push_back(value);
  }
  std::vector<ir::Output> outputs = graph.outputs;
  for (ir::Output& output : outputs) output.value = moved[output.value];
  return ir::EliminateDeadCode(b.Finish(std::move(outputs)));
}

}  // namespace torch_lazy::codegen
