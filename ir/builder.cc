// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "ir/print.h"
#include "ir/round.h"
#include "ir/verify.h"

namespace torch_lazy::ir {
namespace {

bool IsHeader(const Node& node) { return node.op == Op::kParam || node.op == Op::kScalar; }

// Parameters and scalars first, in the order in which they were made; the others keep theirs. In place: fresh memory
// for a graph of a thousand nodes costs as much as moving them.
void PutHeaderFirst(Graph* graph) {
  std::vector<Node>& nodes = graph->nodes;
  std::vector<Value> new_value(nodes.size());
  std::vector<Node> header;
  for (size_t v = 0; v < nodes.size(); ++v) {
    if (!IsHeader(nodes[v])) continue;
    new_value[v] = static_cast<Value>(header.size());
    header.push_back(std::move(nodes[v]));
  }
  Value next = static_cast<Value>(nodes.size());
  for (size_t v = nodes.size(); v-- > 0;) {
    if (IsHeader(nodes[v])) continue;
    new_value[v] = --next;
    if (static_cast<size_t>(next) != v) nodes[static_cast<size_t>(next)] = std::move(nodes[v]);
  }
  std::move(header.begin(), header.end(), nodes.begin());
  for (Node& node : nodes) {
    for (Value& input : node.inputs) input = new_value[static_cast<size_t>(input)];
  }
  for (Output& output : graph->outputs) output.value = new_value[static_cast<size_t>(output.value)];
}

}  // namespace

Builder::Builder(absl::string_view name) { graph_.name = std::string(name); }

Value Builder::Append(Node&& node) {
  if (IsHeader(node)) {
    node.attrs.index = node.op == Op::kParam ? num_params_++ : num_scalars_++;
    header_in_front_ = header_in_front_ && in_header_;
  } else {
    in_header_ = false;
  }
  if (node.origin < 0) node.origin = origin_;
  graph_.nodes.push_back(std::move(node));
  const Value v = static_cast<Value>(graph_.nodes.size()) - 1;
  const absl::Status status = VerifyNode(graph_, v);
  LAZY_CHECK(status.ok(), status.message(), ", in ", PrintNode(graph_, v), " of graph ", graph_.name);
  return v;
}

Value Builder::AppendOp(Op op, std::initializer_list<Value> inputs, Type type, Attrs attrs) {
  return Append(Node{.op = op, .inputs = inputs, .type = std::move(type), .attrs = std::move(attrs)});
}

Value Builder::Param(const Type& type) { return AppendOp(Op::kParam, {}, type); }
Value Builder::Scalar(DType dtype) { return AppendOp(Op::kScalar, {}, {dtype, {}}); }

Value Builder::Const(DType dtype, double value) {
  if (!IsFloat(dtype)) return Const(dtype, FloatToInt(dtype, value));
  Attrs attrs;
  attrs.f = RoundTo(dtype, value);
  return AppendOp(Op::kConst, {}, {dtype, {}}, std::move(attrs));
}

Value Builder::Const(DType dtype, int64_t value) {
  if (IsFloat(dtype)) return Const(dtype, static_cast<double>(value));
  Attrs attrs;
  attrs.i = WrapTo(dtype, value);
  return AppendOp(Op::kConst, {}, {dtype, {}}, std::move(attrs));
}

Value Builder::Iota(const Type& type, int dim) {
  Attrs attrs;
  attrs.dim = dim;
  return AppendOp(Op::kIota, {}, type, std::move(attrs));
}

Value Builder::ExtentOf(Extent extent) {
  if (extent.is_constant()) return Const(DType::kI64, extent.constant());
  Attrs attrs;
  attrs.extent = extent;
  return AppendOp(Op::kExtentOf, {}, {DType::kI64, {}}, std::move(attrs));
}

Value Builder::Count(absl::Span<const Extent> extents, DType dtype) {
  const Dims dims(extents.begin(),
                  extents.end());  // they may be a node's, and nodes move when one is appended
  int64_t constant = 1;
  for (Extent extent : dims) constant *= extent.is_constant() ? extent.constant() : 1;
  Value count = kNoValue;
  for (Extent extent : dims) {
    if (extent.is_constant()) continue;
    const Value symbol = ExtentOf(extent);
    count = count == kNoValue ? symbol : Mul(count, symbol);
  }
  if (count == kNoValue) return Const(dtype, constant);
  if (constant != 1) count = Mul(count, Const(DType::kI64, constant));
  return Cast(count, dtype);
}

Value Builder::Unary(Op op, Value x) { return AppendOp(op, {x}, type(x)); }

Value Builder::Binary(Op op, Value a, Value b) {
  const bool compares = Info(op).dtype_rule == DTypeRule::kCompare;
  return AppendOp(op, {a, b}, {compares ? DType::kBool : dtype(a), dims(a)});
}

Value Builder::Fma(Value a, Value b, Value c) { return AppendOp(Op::kFma, {a, b, c}, type(a)); }

Value Builder::Where(Value condition, Value if_true, Value if_false) {
  return AppendOp(Op::kWhere, {condition, if_true, if_false}, type(if_true));
}

Value Builder::Bernoulli(Value index, std::array<Value, 5> numbers) {
  for (Value& number : numbers) number = BroadcastTo(number, dims(index));
  const auto [seed, offset, threads, width, threshold] = numbers;
  return AppendOp(Op::kBernoulli, {index, seed, offset, threads, width, threshold}, {DType::kBool, dims(index)});
}

Value Builder::Cast(Value x, DType to) {
  if (dtype(x) == to) return x;
  return AppendOp(Op::kCast, {x}, {to, dims(x)});
}

Value Builder::Reshape(Value x, Dims to) {
  if (dims(x) == to) return x;
  return AppendOp(Op::kReshape, {x}, {dtype(x), std::move(to)});
}

Value Builder::Permute(Value x, Ints order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  Type result{dtype(x), {}};
  for (int64_t dim : order) {
    LAZY_CHECK(dim >= 0 && dim < rank(x), "permute: dim ", dim, " is out of range for ", type(x).ToString());
    result.dims.push_back(dims(x)[dim]);
  }
  Attrs attrs;
  attrs.dims = std::move(order);
  return AppendOp(Op::kPermute, {x}, std::move(result), std::move(attrs));
}

Value Builder::Expand(Value x, Dims to) {
  if (dims(x) == to) return x;
  return AppendOp(Op::kExpand, {x}, {dtype(x), std::move(to)});
}

Value Builder::BroadcastTo(Value x, Dims to) {
  LAZY_CHECK(to.size() >= dims(x).size(), "expand: ", type(x).ToString(), " has more dims than ", to.size());
  Dims aligned(to.size() - dims(x).size(), Extent::Constant(1));
  aligned.insert(aligned.end(), dims(x).begin(), dims(x).end());
  return Expand(Reshape(x, std::move(aligned)), std::move(to));
}

Value Builder::Slice(Value x, Dims starts, Dims sizes, Ints steps) {
  const bool whole = sizes == dims(x) &&
                     std::all_of(starts.begin(), starts.end(), [](Extent e) { return e == Extent::Constant(0); }) &&
                     std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
  if (whole) return x;
  Attrs attrs;
  attrs.starts = std::move(starts);
  attrs.steps = std::move(steps);
  return AppendOp(Op::kSlice, {x}, {dtype(x), std::move(sizes)}, std::move(attrs));
}

Value Builder::Like(Value x, double constant) { return FullLike(Const(dtype(x), constant), x); }

Value Builder::Reduce(Op op, Value x, Ints reduced, bool keepdim) {
  if (reduced.empty()) return x;
  std::sort(reduced.begin(), reduced.end());
  const bool is_arg = op == Op::kArgMax || op == Op::kArgMin;
  Type result{is_arg ? DType::kI64 : dtype(x), {}};
  for (int k = 0; k < rank(x); ++k) {
    const bool is_reduced = std::binary_search(reduced.begin(), reduced.end(), k);
    if (!is_reduced) result.dims.push_back(dims(x)[k]);
    if (is_reduced && keepdim) result.dims.push_back(Extent::Constant(1));
  }
  Attrs attrs;
  attrs.dims = std::move(reduced);
  attrs.keepdim = keepdim;
  return AppendOp(op, {x}, std::move(result), std::move(attrs));
}

Value Builder::Mean(Value x, Ints reduced, bool keepdim) {
  Dims extents;
  for (int64_t dim : reduced) extents.push_back(dims(x)[dim]);
  const Value sum = Sum(x, std::move(reduced), keepdim);
  return Div(sum, FullLike(Count(extents, dtype(x)), sum));
}

Value Builder::Matmul(Value x, Value y) {
  Dims result = dims(x);
  result.back() = dims(y).back();
  return AppendOp(Op::kMatmul, {x, y}, {dtype(x), std::move(result)});
}

Value Builder::MatmulSum(Value x, Value y) {
  return AppendOp(Op::kMatmulSum, {x, y}, {dtype(x), {dims(x)[1], dims(y)[2]}});
}

Value Builder::MatmulBias(Value x, Value y, Value bias) {
  return AppendOp(Op::kMatmulBias, {x, y, bias}, {dtype(x), {dims(x)[0], dims(y)[1]}});
}

Value Builder::Attend(Value query, Value keys, Value values, Value bias) {
  const Type result = {dtype(keys), dims(query)};
  if (bias == kNoValue) return AppendOp(Op::kAttend, {query, keys, values}, result);
  return AppendOp(Op::kAttendBiased, {query, keys, values, bias}, result);
}

Value Builder::Stack(absl::Span<const Value> inputs, int dim) {
  Node node;
  node.op = Op::kStack;
  node.inputs.assign(inputs.begin(), inputs.end());
  node.type = type(inputs[0]);
  node.type.dims.insert(node.type.dims.begin() + dim, Extent::Constant(static_cast<int64_t>(inputs.size())));
  node.attrs.dim = dim;
  return Append(std::move(node));
}

Value Builder::Concat(absl::Span<const Value> inputs, int dim, Extent extent) {
  if (inputs.size() == 1) return inputs[0];
  Node node;
  node.op = Op::kConcat;
  node.inputs.assign(inputs.begin(), inputs.end());
  node.type = type(inputs[0]);
  node.type.dims[dim] = extent;
  node.attrs.dim = dim;
  return Append(std::move(node));
}

Value Builder::Take(Value x, Value index, int dim) {
  Attrs attrs;
  attrs.dim = dim;
  return AppendOp(Op::kTake, {x, index}, {dtype(x), dims(index)}, std::move(attrs));
}

Value Builder::Put(Value x, Value rows, Value index, int dim) {
  Attrs attrs;
  attrs.dim = dim;
  return AppendOp(Op::kPut, {x, rows, index}, type(x), std::move(attrs));
}

std::vector<Value> Builder::Call(absl::string_view callee, int64_t record, absl::Span<const Value> operands,
                                 absl::Span<const Type> results, Ints inout, bool may_fail) {
  LAZY_CHECK(inout.size() == results.size(), "call: ", results.size(), " results, ", inout.size(), " inout");
  Node call{.op = Op::kCall,
            .inputs = {operands.begin(), operands.end()},
            .type = results.empty() ? Type{DType::kBool, {}} : results[0],
            .attrs = {}};
  call.attrs.callee = std::string(callee);
  call.attrs.index = record;
  call.attrs.inout = std::move(inout);
  call.attrs.may_fail = may_fail;
  std::vector<Value> values = {Append(std::move(call))};
  for (size_t k = 1; k < results.size(); ++k) {
    Attrs attrs;
    attrs.index = static_cast<int64_t>(k);
    values.push_back(AppendOp(Op::kResult, {values[0]}, results[k], std::move(attrs)));
  }
  if (results.empty()) values.clear();
  return values;
}

Graph Builder::Finish(std::vector<Output> outputs) {
  graph_.outputs = std::move(outputs);
  if (!header_in_front_) PutHeaderFirst(&graph_);
  return std::move(graph_);
}

}  // namespace torch_lazy::ir
