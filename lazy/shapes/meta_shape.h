// SPDX-License-Identifier: Apache-2.0
// What a call's Meta kernel says of its results.
#pragma once

#include <memory>

#include <ATen/core/stack.h>

#include "lazy/calls/call.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Null if the Meta kernel has something else to say than new dense results, or raises: errors are eager's, from the
// kernel that runs when no shape is known. Python's Meta kernels raise others, and where Python is not there, a Meta
// kernel may call one that is missing.
std::shared_ptr<const CallShape> MetaShape(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

}  // namespace torch_lazy::lazy
