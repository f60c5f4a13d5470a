// SPDX-License-Identifier: Apache-2.0
#include "lazy/fold_convolutions.h"

#include <algorithm>
#include <utility>

#include "ir/builder.h"
#include "lazy/packed_convolution.h"

namespace torch_lazy::lazy {
namespace {

using ir::kNoValue;
using ir::Op;
using ir::Value;

// A convolution and what follows it, up to `end`.
struct Chain {
  struct Step {
    Op op;
    Value channels;  // a constant, one number per channel: dims [1, 1, 1, c]
  };
  Value convolution, end;
  std::vector<Step> steps;
  Value sum = kNoValue;  // added at the end
};

class Folder {
 public:
  Folder(const ir::Graph& graph, const std::vector<bool>& constant_params)
      : graph_(graph), is_constant_(graph.nodes.size()), readers_(graph.nodes.size()), chain_of_(graph.nodes.size(), -1) {
    for (size_t v = 0; v < graph.nodes.size(); ++v) {
      const ir::Node& node = graph.nodes[v];
      is_constant_[v] = node.op == Op::kParam ? constant_params[node.attrs.index] : node.op != Op::kCall && node.op != Op::kResult;
      for (const Value input : node.inputs) {
        is_constant_[v] = is_constant_[v] && is_constant_[input];
        readers_[input].push_back(static_cast<Value>(v));
      }
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
    Chain chain{convolution, convolution, {}, kNoValue};
    chain_of_[convolution] = static_cast<int32_t>(chains_.size());
    while (chain.sum == kNoValue && Extend(&chain)) chain_of_[chain.end] = static_cast<int32_t>(chains_.size());
    chains_.push_back(std::move(chain));
  }

  // Takes the one reader of the chain's end into it, if it can be.
  bool Extend(Chain* chain) const {
    if (readers_[chain->end].size() != 1 || readers_[chain->end][0] == kNoValue) return false;
    const Value reader = readers_[chain->end][0];
    const ir::Node& node = graph_.node(reader);
    if (chain_of_[reader] >= 0 || (node.op != Op::kAdd && node.op != Op::kSub && node.op != Op::kMul)) return false;
    const bool is_first = node.inputs[0] == chain->end;
    if (node.op == Op::kSub && !is_first) return false;
    const Value other = node.inputs[is_first ? 1 : 0];
    const Value channels = ChannelsOf(other);
    if (channels != kNoValue) {
      chain->steps.push_back({node.op, channels});
    } else if (node.op == Op::kAdd && !is_constant_[other] && graph_.node(other).op != Op::kExpand) {
      chain->sum = other;
    } else {
      return false;
    }
    chain->end = reader;
    return true;
  }

  // The numbers per channel that a constant broadcasts, or kNoValue.
  Value ChannelsOf(Value v) const {
    const ir::Node& node = graph_.node(v);
    if (!is_constant_[v] || node.op != Op::kExpand) return kNoValue;
    const ir::Dims& dims = graph_.type(node.inputs[0]).dims;
    const bool per_channel = dims.back() == node.type.dims.back() &&
                             std::all_of(dims.begin(), dims.end() - 1, [](ir::Extent extent) { return extent.is_one(); });
    return per_channel ? node.inputs[0] : kNoValue;
  }

  Value Emit(ir::Builder& b, const Chain& chain, const std::vector<Value>& now) const {
    const ir::Node& call = graph_.node(chain.convolution);
    const ir::Extent c = call.type.dims.back();
    Value weight = now[call.inputs[1]], scale = kNoValue;
    Value bias = call.inputs.size() > 2 ? now[call.inputs[2]] : kNoValue;
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
      weight = b.Mul(weight, b.Expand(b.Reshape(scale, {c, one, one, one}), ir::Dims(b.dims(weight))));
    }
    std::vector<Value> operands{now[call.inputs[0]]};
    if (chain.sum != kNoValue) operands.push_back(now[chain.sum]);
    operands.push_back(weight);
    if (bias != kNoValue) operands.push_back(bias);
    return b.Call(kPackedConvolution, call.attrs.index, operands, {call.type}, {chain.sum != kNoValue ? 1 : -1})[0];
  }

  const ir::Graph& graph_;
  std::vector<bool> is_constant_;             // per node: follows from constant parameters, numbers and constants
  std::vector<std::vector<Value>> readers_;   // per node; kNoValue: an output
  std::vector<int32_t> chain_of_;             // per node, -1: none
  std::vector<Chain> chains_;
};

}  // namespace

ir::Graph FoldIntoConvolutions(const ir::Graph& graph, const std::vector<bool>& constant_params) {
  return Folder(graph, constant_params).Run();
}

}  // namespace torch_lazy::lazy
