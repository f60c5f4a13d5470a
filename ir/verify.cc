// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ir/print.h"

namespace torch_lazy::ir {
namespace {

// absl::Status with the op in front, as everywhere: "reshape: 12 elements do not fit f32[5]".
template <typename... Parts>
absl::Status Bad(const Node& node, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(Info(node.op).text, ": ", parts...));
}

bool AllConstant(absl::Span<const Extent> dims) {
  return std::all_of(dims.begin(), dims.end(), [](Extent e) { return e.is_constant(); });
}

absl::Status VerifyLeaf(const Node& node) {
  const Type& type = node.type;
  const bool is_number = node.op == Op::kScalar || node.op == Op::kExtentOf || node.op == Op::kConst;
  if (is_number && type.rank() != 0) return Bad(node, "rank must be 0, not ", type.ToString());
  if (node.op == Op::kExtentOf && type.dtype != DType::kI64) return Bad(node, "must be i64, not ", type.ToString());
  if (node.op == Op::kScalar && type.dtype != DType::kI64 && type.dtype != DType::kF64) {
    return Bad(node, "must be f64 or i64, not ", type.ToString());
  }
  if (node.op == Op::kConst && IsComplex(type.dtype)) return Bad(node, "cannot be ", type.ToString());
  if (node.op == Op::kIota) {
    if (node.attrs.dim < 0 || node.attrs.dim >= type.rank()) {
      return Bad(node, "dim ", node.attrs.dim, " is out of range for ", type.ToString());
    }
    if (IsComplex(type.dtype) || type.dtype == DType::kBool) return Bad(node, "cannot be ", type.ToString());
  }
  return absl::OkStatus();
}

absl::Status VerifyElementwise(const Graph& graph, const Node& node) {
  const size_t first = node.op == Op::kWhere ? 1 : 0;  // where's condition is bool, the others have one dtype
  const DType dtype = graph.type(node.inputs[first]).dtype;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Type& input = graph.type(node.inputs[i]);
    if (input.dims != node.type.dims) {
      return Bad(node, "operand ", i, " is ", input.ToString(), ", the result ", node.type.ToString());
    }
    const DType expected = i < first ? DType::kBool : dtype;
    if (input.dtype != expected) return Bad(node, "operand ", i, " is ", input.ToString(), ", not ", Name(expected));
  }
  if (!Has(Info(node.op).dtypes, dtype)) return Bad(node, "does not compute in ", Name(dtype));
  if (node.op == Op::kCast) {
    return IsComplex(node.type.dtype) ? Bad(node, "cannot make ", Name(node.type.dtype)) : absl::OkStatus();
  }
  const DType result = Info(node.op).dtype_rule == DTypeRule::kCompare ? DType::kBool : dtype;
  if (node.type.dtype != result) return Bad(node, "gives ", Name(result), ", not ", Name(node.type.dtype));
  return absl::OkStatus();
}

absl::Status VerifyReshape(const Node& node, const Type& input) {
  if (!AllConstant(input.dims) || !AllConstant(node.type.dims)) return absl::OkStatus();
  const int64_t count = NumElements(input.dims, {});
  if (count == NumElements(node.type.dims, {})) return absl::OkStatus();
  return Bad(node, count, " elements do not fit ", node.type.ToString());
}

absl::Status VerifyPermute(const Node& node, const Type& input) {
  Ints sorted = node.attrs.dims;
  std::sort(sorted.begin(), sorted.end());
  for (int k = 0; k < static_cast<int>(sorted.size()); ++k) {
    if (sorted[k] != k) return Bad(node, "dims are no permutation of ", sorted.size(), " dims");
  }
  if (node.type.rank() != static_cast<int>(sorted.size()) || input.rank() != node.type.rank()) {
    return Bad(node, sorted.size(), " dims for ", input.ToString(), " to ", node.type.ToString());
  }
  for (int k = 0; k < node.type.rank(); ++k) {
    if (node.type.dims[k] != input.dims[node.attrs.dims[k]]) {
      return Bad(node, "dim ", k, " of ", node.type.ToString(), " is not dim ", node.attrs.dims[k], " of ",
                 input.ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyExpand(const Node& node, const Type& input) {
  bool fits = input.rank() == node.type.rank();
  for (int k = 0; fits && k < input.rank(); ++k) fits = input.dims[k].is_one() || input.dims[k] == node.type.dims[k];
  return fits ? absl::OkStatus() : Bad(node, input.ToString(), " does not broadcast to ", node.type.ToString());
}

absl::Status VerifySlice(const Node& node, const Type& input) {
  const auto& [starts, steps] = std::tie(node.attrs.starts, node.attrs.steps);
  const size_t rank = input.dims.size();
  if (starts.size() != rank || steps.size() != rank || node.type.dims.size() != rank) {
    return Bad(node, starts.size(), " starts and ", steps.size(), " steps for ", input.ToString(), " to ",
               node.type.ToString());
  }
  for (size_t k = 0; k < rank; ++k) {
    if (steps[k] == 0) return Bad(node, "step 0 in dim ", k);
    const Extent size = node.type.dims[k];
    if (!starts[k].is_constant() || !size.is_constant() || !input.dims[k].is_constant()) continue;
    const int64_t last = starts[k].constant() + (size.constant() - 1) * steps[k];
    const int64_t extent = input.dims[k].constant();
    if (size.constant() > 0 && (starts[k].constant() >= extent || last < 0 || last >= extent)) {
      return Bad(node, "elements ", starts[k].constant(), " to ", last, " of dim ", k, " are not in ",
                 input.ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyView(const Graph& graph, const Node& node) {
  const Type& input = graph.type(node.inputs[0]);
  if (input.dtype != node.type.dtype) return Bad(node, "makes ", Name(node.type.dtype), " of ", input.ToString());
  if (node.op == Op::kReshape) return VerifyReshape(node, input);
  if (node.op == Op::kPermute) return VerifyPermute(node, input);
  if (node.op == Op::kExpand) return VerifyExpand(node, input);
  return VerifySlice(node, input);
}

absl::Status VerifyReduce(const Graph& graph, const Node& node) {
  const Type& input = graph.type(node.inputs[0]);
  const Ints& dims = node.attrs.dims;
  const bool is_arg = node.op == Op::kArgMax || node.op == Op::kArgMin;
  if (dims.empty() || (is_arg && dims.size() != 1)) return Bad(node, "over ", dims.size(), " dims");
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] < 0 || dims[k] >= input.rank())
      return Bad(node, "dim ", dims[k], " is out of range for ", input.ToString());
    if (k > 0 && dims[k] <= dims[k - 1]) return Bad(node, "dims are not in ascending order");
  }
  Type expected{is_arg ? DType::kI64 : input.dtype, {}};
  for (int k = 0; k < input.rank(); ++k) {
    const bool reduced = std::binary_search(dims.begin(), dims.end(), k);
    if (!reduced) expected.dims.push_back(input.dims[k]);
    if (reduced && node.attrs.keepdim) expected.dims.push_back(Extent::Constant(1));
  }
  if (node.type != expected) return Bad(node, "gives ", expected.ToString(), ", not ", node.type.ToString());
  if (!Has(Info(node.op).dtypes, input.dtype)) return Bad(node, "does not compute in ", Name(input.dtype));
  return absl::OkStatus();
}

absl::Status VerifyShares(const Graph& graph, const Node& node) {
  const Type& input = graph.type(node.inputs[0]);
  const Ints& dims = node.attrs.dims;
  const int64_t count = static_cast<int64_t>(dims.size());
  if (count == 0 || dims.back() - dims[0] + 1 != count || dims[0] < 0 || dims.back() >= input.rank() ||
      (dims[0] > 0 && dims.back() + 1 < input.rank()))
    return Bad(node, "over dims that are neither the outermost nor the innermost of ", input.ToString());
  if (node.type.dims.empty() || !node.type.dims[0].is_constant() || node.type.dims[0].constant() < 1)
    return Bad(node, "gives ", node.type.ToString(), ", whose first extent is no number of shares");
  const bool is_f64 = node.op == Op::kShareSum && IsFloat(input.dtype);
  Type expected{is_f64 ? DType::kF64 : input.dtype, {node.type.dims[0]}};
  for (int64_t k = 0; k < input.rank(); ++k) {
    if (k < dims[0] || k > dims.back()) expected.dims.push_back(input.dims[k]);
  }
  if (!Has(Info(node.op).dtypes, input.dtype)) return Bad(node, "does not compute in ", Name(input.dtype));
  if (node.type != expected) return Bad(node, "gives ", expected.ToString(), ", not ", node.type.ToString());
  return absl::OkStatus();
}

absl::Status VerifyTake(const Graph& graph, const Node& node) {
  const Type& x = graph.type(node.inputs[0]);
  const Type& index = graph.type(node.inputs[1]);
  if (index.dtype != DType::kI64 || index.dims != node.type.dims) {
    return Bad(node, "the index is ", index.ToString(), ", the result ", node.type.ToString());
  }
  bool fits =
      x.dtype == node.type.dtype && x.rank() == node.type.rank() && node.attrs.dim >= 0 && node.attrs.dim < x.rank();
  for (int k = 0; fits && k < x.rank(); ++k) {
    fits = k == node.attrs.dim || x.dims[k].is_one() || x.dims[k] == node.type.dims[k];
  }
  return fits ? absl::OkStatus()
              : Bad(node, x.ToString(), " along dim ", node.attrs.dim, " does not give ", node.type.ToString());
}

absl::Status VerifyPut(const Graph& graph, const Node& node) {
  const Type &x = graph.type(node.inputs[0]), &rows = graph.type(node.inputs[1]), &index = graph.type(node.inputs[2]);
  const int64_t dim = node.attrs.dim;
  if (x != node.type) return Bad(node, "makes ", node.type.ToString(), " of ", x.ToString());
  if (dim < 0 || dim >= x.rank()) return Bad(node, "dim ", dim, " is out of range for ", x.ToString());
  Type expected = x;
  if (rows.rank() == x.rank()) expected.dims[dim] = rows.dims[dim];
  if (rows != expected) return Bad(node, rows.ToString(), " along dim ", dim, " do not fit ", x.ToString());
  if (index == Type{DType::kI64, {rows.dims[dim]}}) return absl::OkStatus();
  return Bad(node, "the index is ", index.ToString(), ", the rows ", rows.ToString());
}

absl::Status VerifyConcat(const Graph& graph, const Node& node) {
  const Type& type = node.type;
  const int64_t dim = node.attrs.dim;
  if (node.inputs.empty()) return Bad(node, "no operands");
  if (dim < 0 || dim >= type.rank()) return Bad(node, "dim ", dim, " is out of range for ", type.ToString());
  int64_t extent = 0;
  bool constant = type.dims[dim].is_constant();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Type& input = graph.type(node.inputs[i]);
    bool fits = input.dtype == type.dtype && input.rank() == type.rank();
    for (int k = 0; fits && k < type.rank(); ++k) fits = k == dim || input.dims[k] == type.dims[k];
    if (!fits) return Bad(node, "operand ", i, " is ", input.ToString(), ", the result ", type.ToString());
    constant = constant && input.dims[dim].is_constant();
    if (constant) extent += input.dims[dim].constant();
  }
  if (!constant || extent == type.dims[dim].constant()) return absl::OkStatus();
  return Bad(node, extent, " elements along dim ", dim, ", the result is ", type.ToString());
}

absl::Status VerifyStack(const Graph& graph, const Node& node) {
  Type part = node.type;
  const int64_t dim = node.attrs.dim;
  if (node.inputs.empty()) return Bad(node, "no operands");
  if (dim < 0 || dim >= part.rank()) return Bad(node, "dim ", dim, " is out of range for ", part.ToString());
  const Extent number = Extent::Constant(static_cast<int64_t>(node.inputs.size()));
  if (part.dims[dim] != number) return Bad(node, node.inputs.size(), " operands do not make ", part.ToString());
  part.dims.erase(part.dims.begin() + dim);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Type& input = graph.type(node.inputs[i]);
    if (input != part) return Bad(node, "operand ", i, " is ", input.ToString(), ", not ", part.ToString());
  }
  return absl::OkStatus();
}

// Not of 16-bit floats: libraries would round after each batch.
absl::Status VerifyMatmulSum(const Graph& graph, const Node& node) {
  const Type& x = graph.type(node.inputs[0]);
  const Type& y = graph.type(node.inputs[1]);
  const bool fits = IsFloat(x.dtype) && !IsHalf(x.dtype) && x.rank() == 3 && y.rank() == 3 && x.dtype == y.dtype &&
                    x.dims[0] == y.dims[0] && x.dims[2] == y.dims[1];
  if (fits && node.type == Type{x.dtype, {x.dims[1], y.dims[2]}}) return absl::OkStatus();
  return Bad(node, x.ToString(), " by ", y.ToString(), " does not give ", node.type.ToString());
}

absl::Status VerifyMatmul(const Graph& graph, const Node& node) {
  const Type& x = graph.type(node.inputs[0]);
  const Type& y = graph.type(node.inputs[1]);
  const int rank = node.type.rank();
  const bool fits = IsFloat(node.type.dtype) && x.dtype == node.type.dtype && y.dtype == node.type.dtype &&
                    (rank == 2 || rank == 3) && x.rank() == rank && y.rank() == rank &&
                    x.dims[rank - 1] == y.dims[rank - 2] && node.type.dims[rank - 2] == x.dims[rank - 2] &&
                    node.type.dims[rank - 1] == y.dims[rank - 1] &&
                    (rank == 2 || (x.dims[0] == node.type.dims[0] && y.dims[0] == node.type.dims[0]));
  if (fits) return absl::OkStatus();
  return Bad(node, x.ToString(), " by ", y.ToString(), " does not give ", node.type.ToString());
}

absl::Status VerifyMatmulBias(const Graph& graph, const Node& node) {
  const Type& bias = graph.type(node.inputs[2]);
  if (node.type.rank() != 2) return Bad(node, "gives ", node.type.ToString(), ", which is no matrix");
  if (bias != Type{node.type.dtype, {node.type.dims[1]}})
    return Bad(node, "the bias is ", bias.ToString(), ", the result ", node.type.ToString());
  return VerifyMatmul(graph, node);
}

absl::Status VerifyAttend(const Graph& graph, const Node& node) {
  const Type& query = graph.type(node.inputs[0]);
  const Type& keys = graph.type(node.inputs[1]);
  const bool has_ranks = query.rank() == 4 && keys.rank() == 4;
  if (!has_ranks || query.dtype != DType::kF32 || !IsHalf(keys.dtype) || graph.type(node.inputs[2]) != keys ||
      keys.dims[0] != query.dims[0] || keys.dims[1] != query.dims[1] || keys.dims[3] != query.dims[3] ||
      node.type != Type{keys.dtype, query.dims})
    return Bad(node, query.ToString(), " attends to ", keys.ToString(), " and ", graph.type(node.inputs[2]).ToString(),
               ", which does not give ", node.type.ToString());
  if (node.op == Op::kAttend) return absl::OkStatus();
  const Type& bias = graph.type(node.inputs[3]);
  if (IsFloat(bias.dtype) && bias.dims == Dims{query.dims[0], query.dims[1], query.dims[2], keys.dims[2]})
    return absl::OkStatus();
  return Bad(node, "its bias is ", bias.ToString());
}

absl::Status VerifyCall(const Graph& graph, const Node& node) {
  if (node.op == Op::kCall) {
    for (int64_t operand : node.attrs.inout) {
      if (operand >= static_cast<int64_t>(node.inputs.size())) return Bad(node, "there is no operand ", operand);
    }
    return absl::OkStatus();
  }
  const Node& call = graph.node(node.inputs[0]);
  if (call.op != Op::kCall) return Bad(node, "its operand is no call");
  const auto num_results = static_cast<int64_t>(call.attrs.inout.size());
  if (node.attrs.index >= 1 && node.attrs.index < num_results) return absl::OkStatus();
  return Bad(node, "index ", node.attrs.index, " of a call with ", num_results, " results");
}

absl::Status VerifyHeader(const Graph& graph, Header header) {
  int64_t params = 0, scalars = 0;
  bool in_header = true;
  for (const Node& node : graph.nodes) {
    const bool leads = node.op == Op::kParam || node.op == Op::kScalar;
    if (leads && !in_header && header == Header::kLeads) return Bad(node, "stands behind other nodes");
    in_header = leads;
    if (!leads) continue;
    const int64_t expected = node.op == Op::kParam ? params++ : scalars++;
    if (node.attrs.index != expected) return Bad(node, "index ", node.attrs.index, " in place of ", expected);
  }
  return absl::OkStatus();
}

absl::Status VerifyOutputs(const Graph& graph) {
  const int num_params = graph.num_params();
  absl::flat_hash_set<int32_t> taken;
  for (const Output& output : graph.outputs) {
    if (output.value < 0 || output.value >= static_cast<Value>(graph.nodes.size())) {
      return absl::InvalidArgumentError(absl::StrCat("return: there is no node ", output.value));
    }
    if (output.into < 0) continue;
    if (output.into >= num_params) {
      return absl::InvalidArgumentError(absl::StrCat("return: there is no parameter ", output.into));
    }
    if (!taken.insert(output.into).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("return: the buffer of parameter ", output.into, " is taken twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyNode(const Graph& graph, Value v) {
  const Node& node = graph.node(v);
  const int num_inputs = Info(node.op).num_inputs;
  if (num_inputs >= 0 && static_cast<int>(node.inputs.size()) != num_inputs) {
    return Bad(node, num_inputs, " operands are needed, not ", node.inputs.size());
  }
  for (Value input : node.inputs) {
    if (input < 0 || input >= v) return Bad(node, "operand ", input, " does not stand before node ", v);
    const Node& maker = graph.node(input);
    if (maker.op == Op::kCall && maker.attrs.inout.empty()) return Bad(node, "uses a call without results");
  }
  switch (Info(node.op).kind) {
    case Kind::kLeaf:
      return VerifyLeaf(node);
    case Kind::kElementwise:
      return VerifyElementwise(graph, node);
    case Kind::kView:
      return VerifyView(graph, node);
    case Kind::kReduce:
      return VerifyReduce(graph, node);
    case Kind::kPartial:
      return VerifyShares(graph, node);
    case Kind::kIndexed:
      return VerifyTake(graph, node);
    case Kind::kPut:
      return VerifyPut(graph, node);
    case Kind::kConcat:
      return node.op == Op::kStack ? VerifyStack(graph, node) : VerifyConcat(graph, node);
    case Kind::kMatmul:
      if (node.op == Op::kMatmulSum) return VerifyMatmulSum(graph, node);
      return HasBias(node) ? VerifyMatmulBias(graph, node) : VerifyMatmul(graph, node);
    case Kind::kAttend:
      return VerifyAttend(graph, node);
    case Kind::kCall:
      return VerifyCall(graph, node);
  }
  return absl::OkStatus();
}

absl::Status Verify(const Graph& graph, Header header) {
  LAZY_RETURN_IF_ERROR(VerifyHeader(graph, header));
  for (Value v = 0; v < static_cast<Value>(graph.nodes.size()); ++v) LAZY_RETURN_IF_ERROR(VerifyNode(graph, v));
  return VerifyOutputs(graph);
}

}  // namespace torch_lazy::ir
