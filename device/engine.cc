// SPDX-License-Identifier: Apache-2.0
// Backward passes without what PyTorch's engine does around each node.
//
// Note [Nodes in a row]
// The engine sets all of a thread's state (modes, callbacks, autocast's dtypes) to that of the backward pass before
// each node, and back after it, since a worker thread serves many passes; it asks for each gradient's stream, and
// checks its geometry by ways for all kinds of tensors. That takes longer than most nodes. A backward pass over our
// tensors stays on the thread that asked for it, whose state it is anyway, and all of our streams are one queue. So
// where libtorch_cpu evaluates a node, we go on with the next ones, in the engine's order, as if it had come to them:
// from its queue, with its counts. It sees one long node. Where PyTorch evaluates nodes in another way, we say so and
// leave them to it.
//
// A node that may run the program's own code, which may change the thread's state, or ask for the node that runs, is
// left to the engine: Python's and C++'s custom functions, nodes with hooks, and all of them under anomaly detection,
// dispatch modes or a profiler. So is what comes after a hook of a saved tensor that has left grad mode or dispatch
// keys changed.
#include <torch/csrc/autograd/engine.h>

#include <cstring>
#include <optional>
#include <utility>

#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/metrics.h"
#include "device/accelerator.h"
#include "device/evaluate_node.h"
#include "device/imports.h"
#include "device/ready_queue.h"
#include "device/self_check.h"
#include "torch_compat/modes.h"

namespace torch_lazy::device {
namespace {

using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::InputBuffer;
using torch::autograd::Node;
using torch::autograd::ReadyQueue;

constexpr char kOther[] = ", whose autograd engine is another one";

// What the program's code may change of the thread's state.
struct State {
  c10::AutogradState modes = c10::AutogradState::get_tls_state();
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
};
bool operator==(const State& a, const State& b) {
  return a.modes.get_grad_mode() == b.modes.get_grad_mode() &&
         a.modes.get_inference_mode() == b.modes.get_inference_mode() &&
         a.modes.get_fw_grad_mode() == b.modes.get_fw_grad_mode() &&
         a.modes.get_multithreading_enabled() == b.modes.get_multithreading_enabled() &&
         torch_compat::NewModesAreEqual(a.modes, b.modes) && a.keys.included_ == b.keys.included_ &&
         a.keys.excluded_ == b.keys.excluded_;
}

bool IsWatched() {
  return torch::autograd::AnomalyMode::is_enabled() || c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
}

// Said once.
bool IsAsBuilt(const std::shared_ptr<GraphTask>& pass, ReadyQueue& queue) {
  static const bool is_as_built = [&] {
    const bool looks = LookAsBuilt(pass, queue);
    if (!looks) base::LogLine(absl::StrCat("warning: backward passes are slow: ", SaySoOfTorch(kOther)));
    return looks;
  }();
  return is_as_built;
}

// In the place of Engine::evaluate_function. The engine counts the node it has called for when this returns, so that
// the pass does not end meanwhile.
void Evaluate(Engine* engine, std::shared_ptr<GraphTask>& pass, Node* node, InputBuffer& inputs,
              const std::shared_ptr<ReadyQueue>& queue) {
  const NotTheAccelerator all_streams_are_one;
  const State state;
  const bool goes_on = IsPlain(*node) && queue == pass->cpu_ready_queue_ && !state.modes.get_multithreading_enabled();
  engine->evaluate_function(pass, node, inputs, queue);
  if (!goes_on || !IsAsBuilt(pass, *queue)) return;
  const auto leave_to_engine = absl::MakeCleanup([&] { MakeRoomForStreams(*pass, *queue); });
  std::optional<ReadyNode> next;
  while (State() == state && !pass->has_error_.load() && !IsWatched()) {
    if (!next.has_value()) next = Take(pass, *queue, &IsPlain);
    if (!next.has_value()) return;
    ReadyNode ready = *std::exchange(next, std::nullopt);
    base::Count(base::Counter::kNodesInARow);
    if (pass->exec_info_.empty()) {
      next = EvaluateNode(pass, std::move(ready), *queue);
    } else {
      engine->evaluate_function(pass, ready.node.get(), ready.inputs, queue);
    }
  }
  if (next.has_value()) Push(pass, *queue, *std::move(next));
}

[[maybe_unused]] const bool is_engine_replaced = [] {
  const auto original = &Engine::evaluate_function;
  void* function;
  std::memcpy(&function, &original, sizeof(function));  // its address, since it is not virtual
  if (!WhyUnfit().empty() || ReplaceImport(function, function, reinterpret_cast<void*>(&Evaluate))) return true;
  base::LogLine(absl::StrCat("warning: backward passes are slow: ", SaySoOfTorch(kOther)));
  return false;
}();

}  // namespace
}  // namespace torch_lazy::device
