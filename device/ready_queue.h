// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include <torch/csrc/autograd/engine.h>

#include "torch_compat/node.h"

namespace torch_lazy::device {

// A node of a backward pass that has all its gradients.
struct ReadyNode {
  torch_compat::NodePtr<torch::autograd::Node> node;
  torch::autograd::InputBuffer inputs;
};

// Of the queue of the thread that this runs on.
//
// Adds a node of a pass.
void Push(const std::shared_ptr<torch::autograd::GraphTask>& pass, torch::autograd::ReadyQueue& queue, ReadyNode node);

// Whether the pass of a node that runs, and the queue, look as the headers say that we were compiled with.
bool LookAsBuilt(const std::shared_ptr<torch::autograd::GraphTask>& pass, torch::autograd::ReadyQueue& queue);

// Whether the queue would give this node back at once, had it been added.
bool ComesFirst(const torch::autograd::Node& node, const std::shared_ptr<torch::autograd::GraphTask>& pass,
                torch::autograd::ReadyQueue& queue);

// Its next node, if it is one of this pass that `accepts` says yes to.
std::optional<ReadyNode> Take(const std::shared_ptr<torch::autograd::GraphTask>& pass,
                              torch::autograd::ReadyQueue& queue, bool (*accepts)(torch::autograd::Node&));

// The engine adds tensors of accelerators into buffers that have room for their streams: makes it, in what of a pass
// waits.
void MakeRoomForStreams(torch::autograd::GraphTask& pass, torch::autograd::ReadyQueue& queue);
void MakeRoomForStreams(torch::autograd::InputBuffer& inputs);

}  // namespace torch_lazy::device
