// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "device/ready_queue.h"

namespace torch_lazy::device {

// Whether a node may be evaluated without the engine: one of PyTorch's own operators or the end of a path, without
// hooks, whose gradients are of our device or the CPU.
bool IsPlain(torch::autograd::Node& node);

// What Engine::evaluate_function does for a plain node of a pass that computes all gradients (whose exec_info_ is
// empty). Returns the node to go on with, if it is plain and the queue would give it back at once; `queue` has what
// else became ready. The buffers of what waits then have no room for streams. Raises what the node does, and where its
// gradients do not fit the next nodes.
std::optional<ReadyNode> EvaluateNode(const std::shared_ptr<torch::autograd::GraphTask>& pass, ReadyNode ready,
                                      torch::autograd::ReadyQueue& queue);

}  // namespace torch_lazy::device
