// SPDX-License-Identifier: Apache-2.0
// Backward passes without what PyTorch's engine does around each node.
//
// Note [Nodes in a row]
// The engine sets all of a thread's state (modes, callbacks, autocast's dtypes) to that of the backward pass before each node,
// and back after it, since a worker thread serves many passes, which often takes longer than the node (docs/architecture.md,
// Backward passes). A backward pass over our tensors stays on the thread that asked for it, whose state it is anyway. So where
// libtorch_cpu evaluates a node, we go on with the next ones, in the engine's order, as if it had come to them: with its own
// function for a node, its queue and its counts. It sees one long node. Where PyTorch evaluates nodes in another way, nothing
// changes.
//
// A node that may run the program's own code, which may change the thread's state, or ask for the node that runs, is left to
// the engine: Python's and C++'s custom functions, nodes with hooks, and all of them under anomaly detection, dispatch modes
// or a profiler. So is what comes after a hook of a saved tensor that has left grad mode or dispatch keys changed.
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <tuple>
#include <typeinfo>

#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "absl/cleanup/cleanup.h"
#include "base/metrics.h"
#include "device/imports.h"

namespace torch_lazy::device {
namespace {

using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::Node;
using torch::autograd::NodeTask;
using torch::autograd::ReadyQueue;

// The queue's push and pop are not exported, and what they work on is private, which an explicit instantiation may name.
struct Private {
  friend constexpr auto MutexOf(Private);
  friend constexpr auto HeapOf(Private);
};
template <auto kMutex, auto kHeap>
struct Reveal {
  friend constexpr auto MutexOf(Private) { return kMutex; }
  friend constexpr auto HeapOf(Private) { return kHeap; }
};
template struct Reveal<&ReadyQueue::mutex_, &ReadyQueue::heap_>;

// What a std::priority_queue keeps its elements in.
template <typename Queue>
typename Queue::container_type& ElementsOf(Queue& queue) {
  struct Open : Queue {
    static auto Member() { return &Open::c; }
  };
  return queue.*Open::Member();
}

// The order of ReadyQueue: deeper passes first, and later calls.
bool ComesAfter(const NodeTask& one, const NodeTask& other) {
  const auto order = [](const NodeTask& task) {
    const std::shared_ptr<GraphTask> pass = task.base_.lock();
    const bool has_node = task.fn_ != nullptr;
    return std::make_tuple(task.isShutdownTask_, !has_node, pass != nullptr ? pass->reentrant_depth_ : 0,
                           has_node ? task.fn_->sequence_nr() : 0);
  };
  return order(one) < order(other);
}

bool HasHooks(Node& node) {
  return !node.pre_hooks().empty() || !node.post_hooks().empty() || !node.tensor_pre_hooks().empty() ||
         !node.retains_grad_hooks().empty() || node.tensor_post_acc_grad_hooks() != nullptr;
}

// Of PyTorch's own operators, or the end of a path.
bool IsBuiltIn(const Node& node) {
  constexpr char kGenerated[] = "N5torch8autograd9generated";
  const std::type_info& type = typeid(node);
  return std::strncmp(type.name(), kGenerated, sizeof(kGenerated) - 1) == 0 || type == typeid(torch::autograd::AccumulateGrad);
}

bool IsPlain(Node& node) { return IsBuiltIn(node) && !HasHooks(node); }

// What the program's code may change of the thread's state.
struct State {
  c10::AutogradState modes = c10::AutogradState::get_tls_state();
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
};
bool operator==(const State& a, const State& b) {
  return a.modes.get_grad_mode() == b.modes.get_grad_mode() && a.modes.get_inference_mode() == b.modes.get_inference_mode() &&
         a.modes.get_fw_grad_mode() == b.modes.get_fw_grad_mode() &&
         a.modes.get_multithreading_enabled() == b.modes.get_multithreading_enabled() && a.keys.included_ == b.keys.included_ &&
         a.keys.excluded_ == b.keys.excluded_;
}

bool IsWatched() {
  return torch::autograd::AnomalyMode::is_enabled() || c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
}

// The queue's next task, if it is one of this pass that needs nothing of the engine.
std::optional<NodeTask> Take(const std::shared_ptr<GraphTask>& pass, ReadyQueue& queue) {
  const std::lock_guard<std::mutex> lock(queue.*MutexOf(Private()));
  std::vector<NodeTask>& tasks = ElementsOf(queue.*HeapOf(Private()));
  if (tasks.empty()) return std::nullopt;
  const NodeTask& first = tasks.front();
  const bool is_of_pass = !first.base_.owner_before(pass) && !pass.owner_before(first.base_);
  if (!is_of_pass || first.fn_ == nullptr || !IsPlain(*first.fn_)) return std::nullopt;
  std::pop_heap(tasks.begin(), tasks.end(), &ComesAfter);
  std::optional<NodeTask> taken(std::move(tasks.back()));
  tasks.pop_back();
  return taken;
}

// In the place of Engine::evaluate_function. The engine counts the node it has called for when this returns, so that the pass
// does not end meanwhile.
void Evaluate(Engine* engine, std::shared_ptr<GraphTask>& pass, Node* node, InputBuffer& inputs,
              const std::shared_ptr<ReadyQueue>& queue) {
  const State state;
  const bool goes_on = IsPlain(*node) && queue == pass->cpu_ready_queue_ && !state.modes.get_multithreading_enabled();
  engine->evaluate_function(pass, node, inputs, queue);
  while (goes_on && State() == state && !pass->has_error_.load() && !IsWatched()) {
    std::optional<NodeTask> next = Take(pass, *queue);
    if (!next.has_value()) return;
    const auto is_done = absl::MakeCleanup([&] { --pass->outstanding_tasks_; });
    base::Count(base::Counter::kNodesInARow);
    engine->evaluate_function(pass, next->fn_.get(), next->inputs_, queue);
  }
}

[[maybe_unused]] const bool done = [] {
  const auto original = &Engine::evaluate_function;
  void* function;
  std::memcpy(&function, &original, sizeof(function));  // its address, since it is not virtual
  ReplaceImport(function, function, reinterpret_cast<void*>(&Evaluate));
  return true;
}();

}  // namespace
}  // namespace torch_lazy::device
