// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/pad_matmuls.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "codegen/plan/plan.h"
#include "codegen/plan/seen_sizes.h"
#include "ir/builder.h"
#include "ir/passes/passes.h"

namespace torch_lazy::codegen {
namespace {

using ir::Extent;
using ir::Kind;
using ir::Op;
using ir::Value;

// So many operations gain more than the zeros cost, which are up to three launches (docs/measurements.md, Products).
constexpr double kFewestOperations = 4e9;
// A result that is also wanted without its padding is copied, in the time that padding gains with 180 terms.
constexpr double kFewestTermsOfCopied = 512;

enum Axis : int { kRows, kTerms, kColumns };
constexpr int kAxes = 3;

// Dim `dim` of operand `operand` of a product.
struct Side {
  int operand, dim;
};

std::vector<Side> SidesOf(const ir::Node& matmul, int axis) {
  if (axis == kRows) return {{0, 0}};
  if (axis == kTerms) return {{0, 1}, {1, 0}};
  if (ir::HasBias(matmul)) return {{1, 1}, {2, 0}};
  return {{1, 1}};
}

// Which dims of which values are padded, and along which axes products are.
class Choice {
 public:
  Choice(const ir::Graph& graph, const ir::PassContext& context)
      : graph_(graph), context_(context), readers_(graph.nodes.size()), is_output_(graph.nodes.size(), false) {
    for (Value v = 0; v < static_cast<Value>(graph.nodes.size()); ++v) {
      for (const Value input : graph.node(v).inputs) readers_[input].push_back(v);
    }
    for (const ir::Output& output : graph.outputs) is_output_[output.value] = true;
    for (Value v = 0; v < static_cast<Value>(graph.nodes.size()); ++v) Choose(v);
  }

  bool empty() const { return axes_.empty(); }
  bool IsPadded(Value product, int axis) const {
    const auto found = axes_.find(product);
    return found != axes_.end() && found->second[axis];
  }
  // The dim of a value that is padded; -1: none.
  int DimOf(Value v) const {
    const auto found = dims_.find(v);
    return found == dims_.end() ? -1 : found->second;
  }

 private:
  double Typical(Extent extent) const { return SeenSize(ProductOf({extent}), context_.seen_extents); }

  bool IsOdd(Extent extent) const { return static_cast<int64_t>(Typical(extent)) % PaddedExtent::kMultiple != 0; }

  void Choose(Value v) {
    const ir::Node& node = graph_.node(v);
    const bool is_product = node.op == Op::kMatmul || ir::HasBias(node);
    if (!is_product || node.type.rank() != 2 || !ir::IsHalf(node.type.dtype)) return;
    const std::array<Extent, kAxes> extents = {node.type.dims[0], graph_.type(node.inputs[1]).dims[0],
                                               node.type.dims[1]};
    if (2 * Typical(extents[0]) * Typical(extents[1]) * Typical(extents[2]) < kFewestOperations) return;
    for (int axis = 0; axis < kAxes; ++axis) {
      if (!IsOdd(extents[axis])) continue;
      if (axis != kTerms && IsCopied(v) && Typical(extents[kTerms]) < kFewestTermsOfCopied) continue;
      const std::optional<std::map<Value, int>> dims = DimsAlong(node, axis);
      if (!dims.has_value()) continue;
      dims_.insert(dims->begin(), dims->end());
      axes_.try_emplace(v, std::array<bool, kAxes>{}).first->second[axis] = true;
    }
  }

  // The values to pad, along these dims, for the axis; nothing if one cannot be, or if rows along the axis lie in no
  // matrix.
  std::optional<std::map<Value, int>> DimsAlong(const ir::Node& matmul, int axis) const {
    std::map<Value, int> dims;
    bool has_rows = axis == kColumns;  // the result's
    for (const Side side : SidesOf(matmul, axis)) {
      Value v = matmul.inputs[side.operand];
      const std::optional<int> dim = ThroughViews(&v, side.dim);
      if (!dim.has_value() || !CanPad(v, *dim)) return std::nullopt;
      if (const int known = DimOf(v); known >= 0 && known != *dim) return std::nullopt;
      if (dims.try_emplace(v, *dim).first->second != *dim) return std::nullopt;
      has_rows = has_rows || *dim + 1 == graph_.type(v).rank();
    }
    if (!has_rows) return std::nullopt;
    return dims;
  }

  // From an operand to the value that is stored, and from its dim to that value's.
  std::optional<int> ThroughViews(Value* v, int dim) const {
    for (; ir::Info(graph_.node(*v).op).kind == Kind::kView; *v = graph_.node(*v).inputs[0]) {
      const ir::Node& view = graph_.node(*v);
      if (view.op == Op::kPermute) {
        dim = static_cast<int>(view.attrs.dims[dim]);
      } else if (KeepsRows(view) && dim + 1 == view.type.rank()) {
        dim = graph_.type(view.inputs[0]).rank() - 1;
      } else {
        return std::nullopt;
      }
    }
    return dim;
  }

  // A reshape that leaves the last dim alone.
  bool KeepsRows(const ir::Node& node) const {
    const ir::Dims& before = graph_.type(node.inputs[0]).dims;
    return node.op == Op::kReshape && !before.empty() && node.type.rank() > 0 && before.back() == node.type.dims.back();
  }

  // A kernel of ours makes it, and nobody wants its bytes side by side.
  bool CanPad(Value v, int dim) const {
    if (ir::Info(graph_.node(v).op).kind != Kind::kElementwise || is_output_[v]) return false;
    const bool is_last = dim + 1 == graph_.type(v).rank();
    return std::all_of(readers_[v].begin(), readers_[v].end(), [&](Value reader) {
      const ir::Node& node = graph_.node(reader);
      const Kind kind = ir::Info(node.op).kind;
      if (node.op == Op::kReshape) return is_last && KeepsRows(node);
      return kind != Kind::kCall && kind != Kind::kAttend && kind != Kind::kPut && kind != Kind::kConcat;
    });
  }

  // The value, or a view of it, has to lie in memory without what stands beside it.
  bool IsCopied(Value v) const {
    if (is_output_[v]) return true;
    return std::any_of(readers_[v].begin(), readers_[v].end(), [&](Value reader) {
      const Kind kind = ir::Info(graph_.node(reader).op).kind;
      return kind == Kind::kCall || kind == Kind::kAttend || kind == Kind::kPut || kind == Kind::kConcat ||
             (kind == Kind::kView && IsCopied(reader));
    });
  }

  const ir::Graph& graph_;
  const ir::PassContext& context_;
  std::vector<std::vector<Value>> readers_;
  std::vector<bool> is_output_;
  std::map<Value, int> dims_;
  std::map<Value, std::array<bool, kAxes>> axes_;
};

class Padder {
 public:
  Padder(const ir::Graph& graph, const Choice& choice, int32_t first_symbol)
      : graph_(graph), choice_(choice), b_(graph.name), next_symbol_(first_symbol) {}

  ir::Graph Run(ir::PassContext* context) {
    b_.Reserve(graph_.nodes.size());
    for (Value v = 0; v < static_cast<Value>(graph_.nodes.size()); ++v) moved_.push_back(Move(v));
    std::vector<ir::Output> outputs = graph_.outputs;
    for (ir::Output& output : outputs) output.value = moved_[output.value];
    context->seen_extents = NumbersOf(extents_, context->seen_extents);
    context->padded_extents = std::move(extents_);
    return ir::EliminateDeadCode(b_.Finish(std::move(outputs)));
  }

 private:
  Value Move(Value v) {
    const ir::Node& node = graph_.node(v);
    b_.set_origin(node.origin);
    if (ir::Info(node.op).kind == Kind::kMatmul) return Product(v);
    // Read in place of the reshape of a part, which would have to be a copy.
    if (node.op == Op::kReshape && choice_.DimOf(node.inputs[0]) >= 0) return Unpadded(PaddedView(v), node.type.dims);
    ir::Node same = node;
    for (Value& input : same.inputs) input = moved_[input];
    const Value value = b_.Append(std::move(same));
    if (const int dim = choice_.DimOf(v); dim >= 0) wholes_[v] = WithZeros(value, dim);
    return value;
  }

  Value WithZeros(Value value, int dim) {
    const PaddedExtent extent = ExtentOf(b_.dims(value)[dim]);
    ir::Dims dims = b_.dims(value);
    dims[dim] = extent.rest;
    const Value parts[] = {value, b_.Full(b_.Const(b_.dtype(value), 0.0), dims)};
    return b_.Concat(parts, dim, extent.whole);
  }

  Value Product(Value v) {
    ir::Node node = graph_.node(v);
    std::array<bool, kAxes> is_padded{};
    for (Value& input : node.inputs) input = moved_[input];
    for (int axis = 0; axis < kAxes; ++axis) {
      if (!choice_.IsPadded(v, axis)) continue;
      is_padded[axis] = true;
      for (const Side side : SidesOf(node, axis))
        node.inputs[side.operand] = PaddedView(graph_.node(v).inputs[side.operand]);
    }
    if (is_padded[kRows]) node.type.dims[0] = ExtentOf(node.type.dims[0]).whole;
    if (is_padded[kColumns]) node.type.dims[1] = ExtentOf(node.type.dims[1]).whole;
    return Unpadded(b_.Append(std::move(node)), graph_.type(v).dims);
  }

  // `v`, a padded value or a view of one, with its padding.
  Value PaddedView(Value v) {
    if (const auto whole = wholes_.find(v); whole != wholes_.end()) return whole->second;
    const ir::Node& view = graph_.node(v);
    const Value input = PaddedView(view.inputs[0]);
    if (view.op == Op::kPermute) return b_.Permute(input, view.attrs.dims);
    ir::Dims dims = view.type.dims;
    dims.back() = b_.dims(input).back();
    return b_.Reshape(input, dims);
  }

  Value Unpadded(Value value, const ir::Dims& dims) {
    return b_.Slice(value, ir::Dims(dims.size(), Extent::Constant(0)), dims, ir::Ints(dims.size(), 1));
  }

  PaddedExtent ExtentOf(Extent part) {
    if (part.is_constant()) {
      const int64_t whole = PaddedExtent::RoundUp(part.constant());
      return {part, Extent::Constant(whole), Extent::Constant(whole - part.constant())};
    }
    for (const PaddedExtent& known : extents_) {
      if (known.part == part) return known;
    }
    const int32_t symbol = next_symbol_;
    next_symbol_ += 2;
    extents_.push_back({part, Extent::Symbol(symbol), Extent::Symbol(symbol + 1)});
    return extents_.back();
  }

  const ir::Graph& graph_;
  const Choice& choice_;
  ir::Builder b_;
  int32_t next_symbol_;
  std::vector<Value> moved_;       // where each node went
  std::map<Value, Value> wholes_;  // of padded values, by where they were
  std::vector<PaddedExtent> extents_;
};

}  // namespace

ir::Graph PadMatmuls(const ir::Graph& graph, ir::PassContext* context) {
  const Choice choice(graph, *context);
  if (choice.empty()) return graph;
  const int32_t seen = static_cast<int32_t>(context->seen_extents.size());
  return Padder(graph, choice, std::max(seen, graph.num_symbols())).Run(context);
}

}  // namespace torch_lazy::codegen
