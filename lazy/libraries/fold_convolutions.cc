// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/fold_convolutions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/builder.h"
#include "lazy/lower/packed_convolution.h"

namespace torch_lazy::lazy {
namespace {

using ir::DType;
using ir::kNoValue;
using ir::Op;
using ir::Value;

// Dims that move: images of one are stored without that dim, which comes back in another place.
ir::Dims WithoutOnes(const ir::Dims& dims) {
  ir::Dims moving;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(moving),
               [](ir::Extent extent) { return !extent.is_one(); });
  return moving;
}

// A convolution and what follows it, up to `end`.
struct Chain {
  struct Step {
    Op op;
    Value channels;  // a constant, one number per channel: all dims but one are 1
  };
  Value convolution = kNoValue, end = kNoValue;
  std::vector<Value> nodes;  // all of them
  std::vector<Step> steps;
  Value sum = kNoValue;   // added at the end
  bool has_relu = false;  // after that
};

class Folder {
 public:
  Folder(const ir::Graph& graph, const std::vector<bool>& constant_params, bool fuses_relu)
      : graph_(graph),
        fuses_relu_(fuses_relu),
        is_constant_(FollowFromConstants(graph, constant_params)),
        readers_(graph.nodes.size()),
        chain_of_(graph.nodes.size(), -1) {
    for (size_t v = 0; v < graph.nodes.size(); ++v) {
      for (const Value input : graph.nodes[v].inputs) readers_[input].push_back(static_cast<Value>(v));
    }
    for (const ir::Output& output : graph.outputs) readers_[output.value].push_back(kNoValue);
  }

  ir::Graph Run() {
    // The last first, so that a convolution adds to the result of one before it.
    for (size_t v = graph_.nodes.size(); v-- > 0;) {
      if (IsPacked(graph_.nodes[v])) FindChain(static_cast<Value>(v));
    }
    ir::Builder b(graph_.name);
    std::vector<Value> now(graph_.nodes.size(), kNoValue);
    for (size_t v = 0; v < graph_.nodes.size(); ++v) {
      b.set_origin(graph_.nodes[v].origin);
      if (chain_of_[v] >= 0) {
        const Chain& chain = chains_[static_cast<size_t>(chain_of_[v])];
        if (chain.end == static_cast<Value>(v)) now[v] = Emit(b, chain, now);
        continue;
      }
      ir::Node node = graph_.nodes[v];
      for (Value& input : node.inputs) input = now[input];
      now[v] = b.Append(std::move(node));
    }
    std::vector<ir::Output> outputs = graph_.outputs;
    for (ir::Output& output : outputs) output.value = now[output.value];
    return b.Finish(std::move(outputs));
  }

 private:
  void FindChain(Value convolution) {
    Chain longest;
    longest.convolution = convolution;
    Take(&longest, convolution);
    Chain chain = longest;  // of the convolution's type at its end
    while (Extend(&longest)) {
      if (IsLike(longest.end, convolution)) chain = longest;
    }
    if (fuses_relu_ && !chain.has_relu && !CanBeSummand(chain)) return;
    if (chain.sum != kNoValue) taker_[chain.sum] = convolution;
    for (const Value node : chain.nodes) chain_of_[node] = static_cast<int32_t>(chains_.size());
    chains_.push_back(std::move(chain));
  }

  // Takes what reads the chain's end into it, if it can be.
  bool Extend(Chain* chain) const {
    const std::vector<Value>& readers = readers_[chain->end];
    if (fuses_relu_ && readers.size() == 2 && !chain->has_relu) return ExtendByRelu(chain);
    if (readers.size() != 1 || readers[0] == kNoValue || chain_of_[readers[0]] >= 0) return false;
    const ir::Node& node = graph_.node(readers[0]);
    if (fuses_relu_ && node.op == Op::kCast) return ExtendByCast(chain, readers[0]);
    if (MovesOnes(node)) {
      Take(chain, readers[0]);
      return true;
    }
    if (chain->sum != kNoValue || chain->has_relu) return false;
    if (node.op != Op::kAdd && node.op != Op::kSub && node.op != Op::kMul) return false;
    const bool is_first = node.inputs[0] == chain->end;
    if (node.op == Op::kSub && !is_first) return false;
    const Value other = node.inputs[is_first ? 1 : 0];
    const Value channels = ChannelsOf(other, chain->convolution);
    if (channels != kNoValue) {
      chain->steps.push_back({node.op, channels});
    } else if (node.op == Op::kAdd && !is_constant_[other] && graph_.node(other).op != Op::kExpand) {
      chain->sum = NarrowOf(other, chain->convolution);
      if (chain->sum == kNoValue) return false;
    } else {
      return false;
    }
    Take(chain, readers[0]);
    return true;
  }

  // relu(x) is where(x < 0, 0, x).
  bool ExtendByRelu(Chain* chain) const {
    const Value less = readers_[chain->end][0], where = readers_[chain->end][1];
    if (less == kNoValue || where == kNoValue) return false;
    const ir::Node &comparison = graph_.node(less), &choice = graph_.node(where);
    if (comparison.op != Op::kLt || comparison.inputs[0] != chain->end || !IsZero(comparison.inputs[1])) return false;
    if (choice.op != Op::kWhere || choice.inputs[0] != less || !IsZero(choice.inputs[1]) ||
        choice.inputs[2] != chain->end)
      return false;
    if (readers_[less].size() != 1) return false;
    chain->has_relu = true;
    Take(chain, less);
    Take(chain, where);
    return true;
  }

  // 16-bit floats are computed with as f32, and rounded.
  bool ExtendByCast(Chain* chain, Value cast) const {
    const DType to = graph_.type(cast).dtype;
    if (to != DType::kF32 && to != graph_.type(chain->convolution).dtype) return false;
    Take(chain, cast);
    return true;
  }

  // True if the values are of one type but for dims of one element.
  bool IsLike(Value a, Value b) const {
    const ir::Type &x = graph_.type(a), &y = graph_.type(b);
    return x.dtype == y.dtype && WithoutOnes(x.dims) == WithoutOnes(y.dims);
  }

  // True for a view that puts dims of one element elsewhere, and nothing else.
  bool MovesOnes(const ir::Node& node) const {
    if (node.op != Op::kReshape && node.op != Op::kPermute) return false;
    const ir::Dims& dims = graph_.type(node.inputs[0]).dims;
    if (node.op == Op::kReshape) return WithoutOnes(dims) == WithoutOnes(node.type.dims);
    ir::Ints moving;
    std::copy_if(node.attrs.dims.begin(), node.attrs.dims.end(), std::back_inserter(moving),
                 [&](int64_t d) { return !dims[d].is_one(); });
    return std::is_sorted(moving.begin(), moving.end());
  }

  static void Take(Chain* chain, Value reader) {
    chain->nodes.push_back(reader);
    chain->end = reader;
  }

  bool IsZero(Value v) const {
    while (graph_.node(v).op == Op::kExpand || graph_.node(v).op == Op::kReshape) v = graph_.node(v).inputs[0];
    const ir::Node& node = graph_.node(v);
    return node.op == Op::kConst && ir::IsFloat(node.type.dtype) && node.attrs.f == 0 && !std::signbit(node.attrs.f);
  }

  // True if the chain does something, and all that reads it is the sum of a convolution of like results.
  bool CanBeSummand(const Chain& chain) const {
    const auto taker = taker_.find(chain.end);
    if (chain.sum != kNoValue || taker == taker_.end() || readers_[chain.end].size() != 1) return false;
    if (graph_.type(chain.convolution).dims != graph_.type(taker->second).dims) return false;  // other channels
    const Value reader = readers_[chain.end][0];
    if (chain_of_[reader] < 0 && readers_[reader].size() != 1) return false;  // a cast
    return !chain.steps.empty() || graph_.node(chain.convolution).inputs.size() > 2;
  }

  // The numbers per channel that a constant broadcasts, or kNoValue.
  Value ChannelsOf(Value v, Value convolution) const {
    const ir::Node& node = graph_.node(v);
    if (!is_constant_[v] || node.op != Op::kExpand) return kNoValue;
    const ir::Extent c = graph_.type(convolution).dims.back();
    const ir::Dims& all = node.type.dims;
    size_t channel = all.size() - 1;  // the last one that moves
    while (channel > 0 && all[channel].is_one() && !c.is_one()) --channel;
    const ir::Dims& dims = graph_.type(node.inputs[0]).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d == channel ? dims[d] != c : !dims[d].is_one()) return kNoValue;
    }
    return node.inputs[0];
  }

  // What v is in the convolution's type, or kNoValue.
  Value NarrowOf(Value v, Value convolution) const {
    if (graph_.node(v).op == Op::kCast && !IsLike(v, convolution)) v = graph_.node(v).inputs[0];
    return IsLike(v, convolution) ? v : kNoValue;
  }

  // The value in this type; what it was narrowed from, so that it is rounded once.
  static Value Widened(ir::Builder& b, Value v, DType wide) {
    const ir::Node node = b.graph().node(v);
    if (node.op == Op::kCast && b.dtype(node.inputs[0]) == wide) return node.inputs[0];
    if (node.op == Op::kPermute) return b.Permute(Widened(b, node.inputs[0], wide), node.attrs.dims);
    return b.Cast(v, wide);
  }

  Value Emit(ir::Builder& b, const Chain& chain, const std::vector<Value>& now) {
    const ir::Node& call = graph_.node(chain.convolution);
    const DType dtype = call.type.dtype, wide = ir::IsHalf(dtype) ? DType::kF32 : dtype;
    const ir::Extent c = call.type.dims.back();
    Value weight = now[call.inputs[1]], scale = kNoValue;
    Value bias = call.inputs.size() > 2 ? b.Cast(now[call.inputs[2]], wide) : kNoValue;
    for (const Chain::Step& step : chain.steps) {
      const Value channels = b.Reshape(now[step.channels], {c});
      if (step.op == Op::kMul) {
        scale = scale == kNoValue ? channels : b.Mul(scale, channels);
        if (bias != kNoValue) bias = b.Mul(bias, channels);
      } else if (bias == kNoValue) {
        bias = step.op == Op::kAdd ? channels : b.Neg(channels);
      } else {
        bias = b.Binary(step.op, bias, channels);
      }
    }
    if (scale != kNoValue) {
      const ir::Extent one = ir::Extent::Constant(1);
      const Value scales = b.Expand(b.Reshape(scale, {c, one, one, one}), ir::Dims(b.dims(weight)));
      weight = b.Cast(b.Mul(Widened(b, weight, wide), scales), dtype);
    }
    std::vector<Value> operands{now[call.inputs[0]]};
    if (chain.sum != kNoValue) operands.push_back(b.Reshape(now[chain.sum], call.type.dims));
    operands.push_back(weight);
    const auto emit = [&](absl::string_view callee, int64_t inout) {
      return b.Reshape(b.Call(callee, call.attrs.index, operands, {call.type}, {inout})[0],
                       graph_.type(chain.end).dims);
    };
    if (!fuses_relu_) {
      if (bias != kNoValue) operands.push_back(bias);
      return emit(kPackedConvolution, chain.sum != kNoValue ? 1 : -1);
    }
    if (!chain.has_relu) {
      moved_biases_[chain.end] = bias;
      return emit(kPackedSummand, -1);
    }
    if (const auto moved = moved_biases_.find(chain.sum); moved != moved_biases_.end() && moved->second != kNoValue) {
      bias = bias == kNoValue ? moved->second : b.Add(bias, moved->second);
    }
    operands.push_back(bias == kNoValue ? b.BroadcastTo(b.Const(dtype, 0.0), {c}) : b.Cast(bias, dtype));
    return emit(kPackedConvolutionRelu, -1);
  }

  const ir::Graph& graph_;
  const bool fuses_relu_;
  const std::vector<bool> is_constant_;      // per node
  std::vector<std::vector<Value>> readers_;  // per node; kNoValue: an output
  std::vector<int32_t> chain_of_;            // per node, -1: none
  std::vector<Chain> chains_;
  absl::flat_hash_map<Value, Value> taker_;         // of a sum: the convolution that adds it
  absl::flat_hash_map<Value, Value> moved_biases_;  // of summands, by their end; kNoValue: it has none
};

ir::Graph FoldIntoConvolutions(const ir::Graph& graph, ir::PassContext* context) {
  return Folder(graph, context->constant_params, /*fuses_relu=*/false).Run();
}

ir::Graph FuseReluConvolutions(const ir::Graph& graph, ir::PassContext* context) {
  return Folder(graph, context->constant_params, /*fuses_relu=*/true).Run();
}

constexpr ir::Pass kPasses[] = {
    {"fold_convolutions", FoldIntoConvolutions, ir::Pass::Where::kCpu},
    {"relu_convolutions", FuseReluConvolutions, ir::Pass::Where::kGpu},
};

}  // namespace

std::vector<bool> FollowFromConstants(const ir::Graph& graph, const std::vector<bool>& constant_params) {
  std::vector<bool> follows(graph.nodes.size());
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const ir::Node& node = graph.nodes[v];
    const bool may_follow = node.op == ir::Op::kParam ? constant_params[node.attrs.index]
                                                      : node.op != ir::Op::kCall && node.op != ir::Op::kResult;
    follows[v] =
        may_follow && std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) { return follows[input]; });
  }
  return follows;
}

absl::Span<const ir::Pass> ConvolutionPasses() { return kPasses; }

}  // namespace torch_lazy::lazy
