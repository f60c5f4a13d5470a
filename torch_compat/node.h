// SPDX-License-Identifier: Apache-2.0
// Who owns a node of autograd: a std::shared_ptr until 2.12, from 2.13 on a c10::intrusive_ptr.
#pragma once

#include <memory>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/headeronly/version.h>

namespace torch_lazy::torch_compat {

#if TORCH_VERSION_MINOR < 13

template <typename Node>
using NodePtr = std::shared_ptr<Node>;

template <typename Node, typename... Args>
NodePtr<Node> MakeNode(Args&&... args) {
  return NodePtr<Node>(new Node(std::forward<Args>(args)...), torch::autograd::deleteNode);
}

#else

template <typename Node>
using NodePtr = c10::intrusive_ptr<Node>;

template <typename Node, typename... Args>
NodePtr<Node> MakeNode(Args&&... args) {
  return c10::make_intrusive<Node>(std::forward<Args>(args)...);
}

#endif

}  // namespace torch_lazy::torch_compat
