// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/prepare_reductions.h"

#include <algorithm>
#include <optional>

#include "codegen/passes/centred_squares.h"
#include "codegen/plan/seen_sizes.h"
#include "ir/passes/passes.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kMuchWork = 65536;   // elements
constexpr double kMuchOfResult = 16;  // elements

// What keeps a machine busy.
struct Machine {
  double many_results;
  int64_t shares;          // few enough for their sums to be little
  double many_rows;        // that are worth shares: each writes a row of double
  double few_columns;      // of these rows: fewer have no shares
  bool takes_few_results;  // are some results better than one?
};
const Machine& MachineOf(bool is_gpu) {
  static constexpr Machine kCpu = {16, 64, 512, 32, false};
  static constexpr Machine kCuda = {128, 256, 2048, 1, true};  // a result takes a block of its own
  return is_gpu ? kCuda : kCpu;
}

bool IsReduced(const ir::Node& node, int dim) {
  return std::find(node.attrs.dims.begin(), node.attrs.dims.end(), dim) != node.attrs.dims.end();
}

// The reduced dims for a second step: the outermost, until the first step has many results. None if
// one step will do.
ir::Ints SecondStep(const ir::Graph& graph, const ir::Node& node, const ir::PassContext& context) {
  if (node.op == ir::Op::kArgMax || node.op == ir::Op::kArgMin) return {};
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  double results = 1, work = 1;
  for (int k = 0; k < static_cast<int>(dims.size()); ++k) {
    const double extent = SeenSize(ProductOf({dims[k]}), context.seen_extents);
    work *= extent;
    if (!IsReduced(node, k)) results *= extent;
  }
  const Machine& machine = MachineOf(context.for_gpu);
  if (results >= machine.many_results || work < kMuchWork) return {};
  ir::Ints second;
  for (int k = 0; k < static_cast<int>(dims.size()) && results < machine.many_results; ++k) {
    if (!IsReduced(node, k) || dims[k].is_one()) continue;
    const double extent = SeenSize(ProductOf({dims[k]}), context.seen_extents);
    if (machine.takes_few_results && !second.empty() && work / (results * extent) < kMuchOfResult) break;
    second.push_back(k);
    results *= extent;
  }
  const bool splits = second.size() < node.attrs.dims.size() && work / results >= kMuchOfResult;
  return splits ? second : ir::Ints();
}

// Long columns are folded in shares of the rows. Those of sums are made by a kernel that walks along
// the rows anyway (a normalisation's gradient), or one that reads memory in order at least.
// So many; 0: they are done as wholes.
int64_t ColumnShares(const ir::Graph& graph, const ir::Node& node, const ir::PassContext& context) {
  constexpr double kMostColumns = 8192, kMostOfBlock = 1024;
  if (ir::ShareOf(node.op) == ir::Op::kParam) return 0;
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  if (node.attrs.dims.size() == dims.size()) return 0;
  double rows = 1, columns = 1;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (IsReduced(node, static_cast<int>(k)) != (k < node.attrs.dims.size())) return 0;  // reduced ones come first
    (IsReduced(node, static_cast<int>(k)) ? rows : columns) *= SeenSize(ProductOf({dims[k]}), context.seen_extents);
  }
  const Machine& machine = MachineOf(context.for_gpu);
  // Rows add up f32, and only that; a GPU's blocks walk down columns for anything.
  const bool in_rows = node.op == ir::Op::kSum && node.type.dtype == ir::DType::kF32;
  if (!in_rows && !context.for_gpu) return 0;
  const bool has_shares = rows >= machine.many_rows && columns >= machine.few_columns &&
                          columns <= (in_rows ? kMostColumns : kMostOfBlock) && rows * columns >= kMuchWork;
  return has_shares ? machine.shares : 0;
}

// A few long rows, if `reduced`, some of the node's dims, are the innermost: so many shares of
// each. 0: they are done as wholes.
int64_t RowShares(const ir::Graph& graph, const ir::Node& node, const ir::Ints& reduced,
                  const ir::PassContext& context) {
  // A row's number is often needed along the row again, and a kernel that does both is better.
  constexpr double kLong = 32768, kLongRow = 262144, kFewRows = 16;
  if (!context.for_gpu || ir::ShareOf(node.op) == ir::Op::kParam || reduced.empty()) return 0;
  const ir::Dims& dims = graph.type(node.inputs[0]).dims;
  const size_t first = static_cast<size_t>(reduced[0]);
  if (first + reduced.size() != dims.size()) return 0;
  const bool is_whole = node.attrs.dims.size() == dims.size();
  double rows = 1, length = 1;
  for (size_t k = 0; k < dims.size(); ++k)
    (k < first ? rows : length) *= SeenSize(ProductOf({dims[k]}), context.seen_extents);
  const Machine& machine = MachineOf(context.for_gpu);
  if (rows > kFewRows || length < (is_whole ? kLong : kLongRow)) return 0;
  int64_t shares = machine.shares;
  while (static_cast<double>(shares) * rows > 2 * static_cast<double>(machine.shares)) shares /= 2;
  return shares;
}

// Appends nodes to the new graph.
class Rewriter {
 public:
  explicit Rewriter(const ir::PassContext& context) : context_(context) {}

  ir::Value Append(ir::Node node) {
    if (node.origin < 0) node.origin = origin;
    graph.nodes.push_back(std::move(node));
    return static_cast<ir::Value>(graph.nodes.size()) - 1;
  }

  ir::Value Reduction(const ir::Node& node) {
    if (const int64_t shares = ColumnShares(graph, node, context_); shares > 0) {
      const std::optional<Centred> centred = CentredSquares(graph, node);
      if (context_.for_gpu && centred.has_value()) return SumOfSquares(node, *centred, shares);
      return CastTo(node.type, FoldOfShares(node, node.attrs.dims, shares));
    }
    const ir::Ints second = SecondStep(graph, node, context_);
    ir::Ints first;
    for (const int64_t dim : node.attrs.dims) {
      if (std::find(second.begin(), second.end(), dim) == second.end()) first.push_back(dim);
    }
    const int64_t shares = RowShares(graph, node, first, context_);
    if (shares > 0) return CastTo(node.type, FoldOfShares(node, first, shares));
    ir::Value value = Reduce(node, node.inputs[0], first);
    if (!second.empty()) value = Reduce(node, value, second);
    return Reshape(value, node.type);
  }

  ir::Graph graph;
  int32_t origin = -1;  // of the node whose place is taken

 private:
  // The sum of (x - mean)^2 in the same walk as the mean's own: squares of x - k, and what they are
  // off, in double. With k the first row, x - k is about as large as x - mean, and as exact.
  ir::Value SumOfSquares(const ir::Node& node, const Centred& centred, int64_t shares) {
    const ir::Type type = graph.type(centred.x);
    ir::Node first;
    first.op = ir::Op::kSlice;
    first.inputs = {centred.x};
    first.type = type;
    first.attrs.starts.assign(type.dims.size(), ir::Extent::Constant(0));
    first.attrs.steps.assign(type.dims.size(), 1);
    for (const int64_t dim : node.attrs.dims) first.type.dims[dim] = ir::Extent::Constant(1);
    const ir::Value k = Append(first);
    const ir::Value shifted = Op(ir::Op::kSub, {centred.x, Op(ir::Op::kExpand, {k}, type)}, type);
    ir::Node sum = node;
    sum.attrs.keepdim = true;
    sum.type.dims = first.type.dims;
    sum.inputs = {shifted};
    const ir::Value sum_of_shifted = FoldOfShares(sum, node.attrs.dims, shares);
    sum.inputs = {Op(ir::Op::kMul, {shifted, shifted}, type)};
    const ir::Value squares = FoldOfShares(sum, node.attrs.dims, shares);
    const ir::Type f64 = graph.type(squares);
    const auto as_f64 = [&](ir::Value v) { return Op(ir::Op::kCast, {Reshape(v, {ir::DType::kF32, f64.dims})}, f64); };
    const ir::Value off = Op(ir::Op::kSub, {as_f64(centred.mean), as_f64(k)}, f64);
    const ir::Value rows = Full(CountOf(type.dims, node.attrs.dims), f64);
    const ir::Value twice = Op(ir::Op::kAdd, {sum_of_shifted, sum_of_shifted}, f64);
    // (x - mean)^2 = (x - k)^2 - off * (2 (x - k) - off)
    const ir::Value rest = Op(ir::Op::kSub, {twice, Op(ir::Op::kMul, {rows, off}, f64)}, f64);
    const ir::Value centred_squares = Op(ir::Op::kSub, {squares, Op(ir::Op::kMul, {off, rest}, f64)}, f64);
    return CastTo(node.type, Op(ir::Op::kMax, {centred_squares, Full(Zero(), f64)}, f64));
  }

  ir::Value Op(ir::Op op, absl::InlinedVector<ir::Value, 3> inputs, ir::Type type) {
    ir::Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.type = std::move(type);
    return Append(std::move(node));
  }

  // A single number, everywhere.
  ir::Value Full(ir::Value number, const ir::Type& type) {
    const ir::Dims ones(type.dims.size(), ir::Extent::Constant(1));
    return Op(ir::Op::kExpand, {Reshape(number, {type.dtype, ones})}, type);
  }

  ir::Value Zero() { return Op(ir::Op::kConst, {}, {ir::DType::kF64, {}}); }

  // How many elements these dims have, as f64.
  ir::Value CountOf(const ir::Dims& dims, const ir::Ints& of) {
    ir::Value count = ir::kNoValue;
    for (const int64_t dim : of) {
      ir::Node extent;
      extent.op = ir::Op::kExtentOf;
      extent.type = {ir::DType::kI64, {}};
      extent.attrs.extent = dims[dim];
      const ir::Value next = Append(std::move(extent));
      count = count == ir::kNoValue ? next : Op(ir::Op::kMul, {count, next}, {ir::DType::kI64, {}});
    }
    return Op(ir::Op::kCast, {count}, {ir::DType::kF64, {}});
  }

  // First in shares along some of the node's dims, then over the shares and the others. Sums of
  // floats are double.
  ir::Value FoldOfShares(const ir::Node& node, const ir::Ints& first, int64_t num_shares) {
    const ir::Dims& dims = graph.type(node.inputs[0]).dims;
    ir::Node shares;
    shares.op = ir::ShareOf(node.op);
    shares.inputs = node.inputs;
    shares.attrs.dims = first;
    const bool is_f64 = node.op == ir::Op::kSum && ir::IsFloat(node.type.dtype);
    shares.type = {is_f64 ? ir::DType::kF64 : node.type.dtype, {ir::Extent::Constant(num_shares)}};
    ir::Ints second = {0};
    for (int k = 0; k < static_cast<int>(dims.size()); ++k) {
      if (std::find(first.begin(), first.end(), k) != first.end()) continue;
      if (IsReduced(node, k)) second.push_back(static_cast<int64_t>(shares.type.dims.size()));
      shares.type.dims.push_back(dims[k]);
    }
    ir::Node rest = node;
    rest.type.dtype = shares.type.dtype;
    return Reduce(rest, Append(std::move(shares)), second);
  }

  ir::Value CastTo(const ir::Type& type, ir::Value value) {
    if (graph.type(value).dtype != type.dtype) value = Op(ir::Op::kCast, {value}, {type.dtype, graph.type(value).dims});
    return Reshape(value, type);
  }

  ir::Value Reshape(ir::Value value, const ir::Type& type) {
    if (graph.type(value).dims == type.dims) return value;
    ir::Node reshape;
    reshape.op = ir::Op::kReshape;
    reshape.inputs = {value};
    reshape.type = type;
    return Append(std::move(reshape));
  }

  ir::Value Reduce(const ir::Node& like, ir::Value input, const ir::Ints& dims) {
    ir::Node node = like;
    node.inputs = {input};
    node.attrs.dims = dims;
    node.attrs.keepdim = true;
    node.type.dims = graph.type(input).dims;
    for (const int64_t dim : dims) node.type.dims[dim] = ir::Extent::Constant(1);
    return Append(std::move(node));
  }

  const ir::PassContext& context_;
};

// True for a share_sum, and for what nothing else needs.
std::vector<bool> OnlyForShares(const ir::Graph& graph) {
  std::vector<bool> only(graph.nodes.size(), true), is_used(graph.nodes.size(), false);
  for (const ir::Output& output : graph.outputs) only[output.value] = false, is_used[output.value] = true;
  for (size_t v = graph.nodes.size(); v-- > 0;) {
    const ir::Node& node = graph.nodes[v];
    const ir::Kind kind = ir::Info(node.op).kind;
    const bool is_early = kind == ir::Kind::kPartial ||
                          (is_used[v] && only[v] && (kind == ir::Kind::kElementwise || kind == ir::Kind::kView));
    for (const ir::Value input : node.inputs) {
      is_used[input] = true;
      only[input] = only[input] && is_early;
    }
    only[v] = is_early;
  }
  return only;
}

// The same nodes, sums of shares as early as they can stand, even before parameters: whoever else needs
// their operands comes later.
ir::Graph SharesFirst(const ir::Graph& graph) {
  const std::vector<bool> is_early = OnlyForShares(graph);
  std::vector<std::vector<ir::Value>> early_users(graph.nodes.size());
  std::vector<int> missing(graph.nodes.size(), 0);
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    if (!is_early[v]) continue;
    for (const ir::Value input : graph.node(v).inputs) early_users[input].push_back(v), ++missing[v];
  }
  ir::Graph result;
  result.name = graph.name;
  std::vector<ir::Value> moved(graph.nodes.size());
  for (ir::Value v = 0; v < static_cast<ir::Value>(graph.nodes.size()); ++v) {
    if (is_early[v]) continue;
    std::vector<ir::Value> ready = {v};
    for (size_t k = 0; k < ready.size(); ++k) {
      ir::Node node = graph.node(ready[k]);
      for (ir::Value& input : node.inputs) input = moved[input];
      moved[ready[k]] = static_cast<ir::Value>(result.nodes.size());
      result.nodes.push_back(std::move(node));
      for (const ir::Value user : early_users[ready[k]]) {
        if (--missing[user] == 0) ready.push_back(user);
      }
    }
  }
  for (const ir::Output& output : graph.outputs) result.outputs.push_back({moved[output.value], output.into});
  return result;
}

}  // namespace

ir::Graph PrepareReductions(const ir::Graph& graph, ir::PassContext* context) {
  Rewriter rewriter(*context);
  rewriter.graph.name = graph.name;
  std::vector<ir::Value> moved;
  for (const ir::Node& original : graph.nodes) {
    ir::Node node = original;
    for (ir::Value& input : node.inputs) input = moved[input];
    rewriter.origin = node.origin;
    const bool is_reduction = ir::Info(node.op).kind == ir::Kind::kReduce;
    moved.push_back(is_reduction ? rewriter.Reduction(node) : rewriter.Append(std::move(node)));
  }
  for (const ir::Output& output : graph.outputs) {
    rewriter.graph.outputs.push_back({moved[output.value], output.into});
  }
  return SharesFirst(ir::EliminateCommonSubexpressions(rewriter.graph));
}

}  // namespace torch_lazy::codegen
