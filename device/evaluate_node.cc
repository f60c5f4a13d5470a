// SPDX-License-Identifier: Apache-2.0
#include "device/evaluate_node.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <typeinfo>
#include <utility>

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace torch_lazy::device {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::InputMetadata;
using torch::autograd::Node;
using torch::autograd::ReadyQueue;
using torch::autograd::variable_list;

bool HasHooks(Node& node) {
  return !node.pre_hooks().empty() || !node.post_hooks().empty() || !node.tensor_pre_hooks().empty() ||
         !node.retains_grad_hooks().empty() || node.tensor_post_acc_grad_hooks() != nullptr;
}

bool IsBuiltIn(const Node& node) {
  constexpr char kGenerated[] = "N5torch8autograd9generated";
  const std::type_info& type = typeid(node);
  return std::strncmp(type.name(), kGenerated, sizeof(kGenerated) - 1) == 0 ||
         type == typeid(torch::autograd::AccumulateGrad);
}

bool IsOursOrTheCpus(c10::Device device) { return device.is_privateuseone() || device.is_cpu(); }

bool TakesOursOrTheCpus(const Node& node) {
  for (uint32_t i = 0; i < node.num_inputs(); ++i) {
    if (!IsOursOrTheCpus(node.input_metadata(i).device())) return false;
  }
  return true;
}

// Whether a gradient is just as the next node expects it.
bool Fits(const at::Tensor& gradient, const InputMetadata& expected) {
  const c10::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
  return !expected.was_default_constructed() && !expected.is_tensor_subclass() && !expected.is_nested_tensor() &&
         !impl.is_python_dispatch() && !impl.has_symbolic_sizes_strides() && expected.layout() == at::kStrided &&
         impl.layout() == at::kStrided && expected.device() == impl.device() &&
         expected.grad_dtype() == gradient.scalar_type() && expected.shape_as_dim_vector() == gradient.sym_sizes();
}

bool Fit(const variable_list& gradients, const edge_list& edges) {
  if (gradients.size() != edges.size()) return false;
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (!edge.is_valid() || !gradients[i].defined()) continue;
    if (!Fits(gradients[i], edge.function->input_metadata(edge.input_nr))) return false;
  }
  return true;
}

variable_list Call(const GraphTask& pass, Node& node, variable_list inputs) {
  if (!pass.keep_graph_) node.will_release_variables();
  variable_list gradients = node(std::move(inputs));
  if (!Fit(gradients, node.next_edges())) {
    torch::autograd::validate_outputs(node.next_edges(), gradients, [&](const std::string& what) {
      return "Function " + node.name() + " returned an " + what;
    });
  }
  if (!pass.keep_graph_) node.release_variables();
  return gradients;
}

void Add(at::Tensor gradient, const Edge& edge, InputBuffer& inputs) {
  at::Tensor& input = inputs.buffer.at(edge.input_nr);
  if (!gradient.defined()) return;
  const bool has_stream = !IsOursOrTheCpus(gradient.device());
  if (!has_stream && !input.defined()) {
    input = std::move(gradient);
    return;
  }
  if (has_stream) MakeRoomForStreams(inputs);
  inputs.add(edge.input_nr, std::move(gradient), std::nullopt, has_stream ? edge.function->stream() : std::nullopt,
             edge.function.get());
}

// The one that the queue would give back first need not go there. Where two are equal, its heap decides.
std::optional<ReadyNode> PushAllButFirst(const std::shared_ptr<GraphTask>& pass, ReadyQueue& queue,
                                         absl::Span<ReadyNode> nodes) {
  const auto comes_after = [](const ReadyNode& a, const ReadyNode& b) {
    return a.node->sequence_nr() < b.node->sequence_nr();
  };
  const auto first = std::max_element(nodes.begin(), nodes.end(), comes_after);
  if (first == nodes.end()) return std::nullopt;
  const bool is_only =
      std::count_if(nodes.begin(), nodes.end(), [&](const ReadyNode& node) { return !comes_after(node, *first); }) == 1;
  const bool goes_on = is_only && IsPlain(*first->node) && ComesFirst(*first->node, pass, queue);
  for (auto node = nodes.begin(); node != nodes.end(); ++node) {
    if (!goes_on || node != first) Push(pass, queue, std::move(*node));
  }
  return goes_on ? std::optional<ReadyNode>(std::move(*first)) : std::nullopt;
}

}  // namespace

bool IsPlain(Node& node) { return IsBuiltIn(node) && !HasHooks(node) && TakesOursOrTheCpus(node); }

std::optional<ReadyNode> EvaluateNode(const std::shared_ptr<GraphTask>& pass, ReadyNode ready, ReadyQueue& queue) {
  Node& node = *ready.node;
  variable_list gradients = Call(*pass, node, std::move(ready.inputs.buffer));
  absl::InlinedVector<ReadyNode, 4> all_ready;
  const std::lock_guard<std::mutex> lock(pass->mutex_);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Edge& next = node.next_edge(i);
    if (!next.is_valid()) continue;
    const auto dependency = pass->dependencies_.find(next.function.get());
    TORCH_CHECK(dependency != pass->dependencies_.end(), "dependency not found for ", next.function->name());
    const bool is_ready = --dependency->second == 0;
    if (is_ready) pass->dependencies_.erase(dependency);

    const auto waiting = pass->not_ready_.find(next.function.get());
    if (waiting != pass->not_ready_.end()) {
      Add(std::move(gradients[i]), next, waiting->second);
      if (!is_ready) continue;
      all_ready.push_back({next.function, std::move(waiting->second)});
      pass->not_ready_.erase(waiting);
      continue;
    }
    InputBuffer inputs(variable_list(next.function->num_inputs()));
    Add(std::move(gradients[i]), next, inputs);
    if (is_ready) {
      all_ready.push_back({next.function, std::move(inputs)});
    } else {
      pass->not_ready_.emplace(next.function.get(), std::move(inputs));
    }
  }
  return PushAllButFirst(pass, queue, absl::MakeSpan(all_ready));
}

}  // namespace torch_lazy::device
