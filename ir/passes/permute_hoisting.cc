// SPDX-License-Identifier: Apache-2.0
//
// exp(permute x) is permute(exp x), and so for slices, concatenations and reductions: work is done
// in the order in which its operands lie in memory, and the permutations that remain meet, and
// cancel. What lies between two convolutions stays channels-last that way.
#include <algorithm>
#include <utility>

#include "ir/passes/passes.h"
#include "ir/passes/rebuild.h"

namespace torch_lazy::ir {
namespace {

const Node* MakerOf(const Builder& b, Value v, Op op) {
  const Node& node = b.graph().node(v);
  return node.op == op ? &node : nullptr;
}

Ints InverseOf(const Ints& order) {
  Ints inverse(order.size());
  for (size_t k = 0; k < order.size(); ++k) inverse[order[k]] = static_cast<int64_t>(k);
  return inverse;
}

// What stands per dim of the permuted value, per dim of the value itself.
template <typename List>
List BeforePermute(const List& permuted, const Ints& order) {
  List list = permuted;
  for (size_t k = 0; k < order.size(); ++k) list[order[k]] = permuted[k];
  return list;
}

// The order all these values are permuted in, broadcasts aside; null if there is none.
const Ints* CommonOrder(const Builder& b, absl::Span<const Value> values) {
  const Ints* order = nullptr;
  for (const Value v : values) {
    const Node& maker = b.graph().node(v);
    if (maker.op == Op::kExpand) continue;
    if (maker.op != Op::kPermute || (order != nullptr && *order != maker.attrs.dims)) return nullptr;
    order = &maker.attrs.dims;
  }
  return order;
}

// The value of which `v`, a permute by this order or an expand, is the permute.
Value Unpermuted(Builder& b, Value v, const Ints& order) {
  const Node maker = b.graph().node(v);
  if (maker.op == Op::kPermute) return maker.inputs[0];
  return b.Expand(b.Permute(maker.inputs[0], InverseOf(order)), BeforePermute(maker.type.dims, order));
}

Value OfElementwise(Builder& b, const Node& node) {
  const Ints* common = CommonOrder(b, node.inputs);
  if (common == nullptr) return kNoValue;
  const Ints order = *common;
  Node before = node;
  for (Value& input : before.inputs) input = Unpermuted(b, input, order);
  before.type.dims = BeforePermute(node.type.dims, order);
  return b.Permute(b.Append(std::move(before)), order);
}

Value OfSlice(Builder& b, const Node& node) {
  const Node* permute = MakerOf(b, node.inputs[0], Op::kPermute);
  if (permute == nullptr) return kNoValue;
  const Ints order = permute->attrs.dims;
  const Value x = permute->inputs[0];
  return b.Permute(b.Slice(x, BeforePermute(node.attrs.starts, order), BeforePermute(node.type.dims, order),
                           BeforePermute(node.attrs.steps, order)),
                   order);
}

Value OfConcat(Builder& b, const Node& node) {
  const Ints* common = CommonOrder(b, node.inputs);
  if (common == nullptr) return kNoValue;
  const Ints order = *common;
  std::vector<Value> parts;
  for (const Value input : node.inputs) parts.push_back(Unpermuted(b, input, order));
  return b.Permute(b.Concat(parts, static_cast<int>(order[node.attrs.dim]), node.type.dims[node.attrs.dim]), order);
}

// The memory that is written anew stays what it is.
Value OfPut(Builder& b, const Node& node) {
  const Node* permute = MakerOf(b, node.inputs[0], Op::kPermute);
  if (permute == nullptr) return kNoValue;
  const Ints order = permute->attrs.dims;
  const Value x = permute->inputs[0], rows = b.Permute(node.inputs[1], InverseOf(order));
  return b.Permute(b.Put(x, rows, node.inputs[2], static_cast<int>(order[node.attrs.dim])), order);
}

Value OfReduction(Builder& b, const Node& node) {
  const Node* permute = MakerOf(b, node.inputs[0], Op::kPermute);
  if (permute == nullptr) return kNoValue;
  const Ints order = permute->attrs.dims;
  const Value x = permute->inputs[0];
  Ints reduced;
  for (const int64_t dim : node.attrs.dims) reduced.push_back(order[dim]);
  const Value result = b.Reduce(node.op, x, reduced, node.attrs.keepdim);
  if (node.attrs.keepdim) return b.Permute(result, order);
  Ints rest;  // the order of the dims that are left, numbered anew
  for (const int64_t dim : order) {
    if (std::find(reduced.begin(), reduced.end(), dim) != reduced.end()) continue;
    rest.push_back(dim - std::count_if(reduced.begin(), reduced.end(), [&](int64_t r) { return r < dim; }));
  }
  return b.Permute(result, rest);
}

bool IsOne(Extent extent) { return extent.is_one(); }

// The permute of `x` seen through dims of 1 that come and go: a permute of a value without any, but
// for those that `dims`, the result's, has; these stand behind. So equal orders in memory are equal
// orders here.
Value PermuteAroundOnes(Builder& b, Value x, const Ints& order, const Dims& dims) {
  Dims before;                          // of x, without ones
  Ints place(order.size(), -1), after;  // of x's dims in these; the order of these
  for (int64_t dim = 0; dim < b.rank(x); ++dim) {
    if (IsOne(b.dims(x)[dim])) continue;
    place[dim] = static_cast<int64_t>(before.size());
    before.push_back(b.dims(x)[dim]);
  }
  auto next = order.begin();
  int64_t ones = static_cast<int64_t>(before.size());
  for (const Extent extent : dims) {
    if (IsOne(extent)) {
      after.push_back(ones++);
      continue;
    }
    while (place[*next] < 0) ++next;
    after.push_back(place[*next++]);
  }
  before.resize(dims.size(), Extent::Constant(1));
  Ints moved;
  std::copy_if(after.begin(), after.end(), std::back_inserter(moved), [&](int64_t dim) { return !IsOne(before[dim]); });
  if (std::is_sorted(moved.begin(), moved.end())) return b.Reshape(x, dims);
  return b.Permute(b.Reshape(x, std::move(before)), std::move(after));
}

Dims WithoutOnes(const Dims& dims) {
  Dims rest;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(rest), [](Extent e) { return !IsOne(e); });
  return rest;
}

Value OfReshape(Builder& b, const Node& node) {
  const Node* permute = MakerOf(b, node.inputs[0], Op::kPermute);
  if (permute == nullptr || WithoutOnes(permute->type.dims) != WithoutOnes(node.type.dims)) return kNoValue;
  const Ints order = permute->attrs.dims;
  return PermuteAroundOnes(b, permute->inputs[0], order, node.type.dims);
}

Value OfPermute(Builder& b, const Node& node) {
  Value x = node.inputs[0];
  Ints order = node.attrs.dims;
  if (const Node* inner = MakerOf(b, x, Op::kPermute)) {
    for (int64_t& dim : order) dim = inner->attrs.dims[dim];
    x = inner->inputs[0];
  }
  return PermuteAroundOnes(b, x, order, node.type.dims);
}

Value HoistPermute(Builder& b, const Node& node) {
  switch (Info(node.op).kind) {
    case Kind::kElementwise:
      return OfElementwise(b, node);
    case Kind::kReduce:
      return OfReduction(b, node);
    case Kind::kConcat:
      return node.op == Op::kConcat ? OfConcat(b, node) : kNoValue;
    case Kind::kPut:
      return OfPut(b, node);
    case Kind::kView:
      break;
    default:
      return kNoValue;
  }
  if (node.op == Op::kReshape) return OfReshape(b, node);
  if (node.op == Op::kPermute) return OfPermute(b, node);
  return node.op == Op::kSlice ? OfSlice(b, node) : kNoValue;
}

}  // namespace

Graph HoistPermutes(const Graph& graph) { return Rebuild(graph, HoistPermute); }

}  // namespace torch_lazy::ir
