// SPDX-License-Identifier: Apache-2.0
// Which calls are alike: words that are equal for calls of which one's answer is the other's.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/stack.h>

#include "lazy/calls/call.h"

namespace torch_lazy::lazy {

using Words = std::vector<int64_t>;

// Equal for calls whose results have the same geometry, and all of which eager takes if it takes one.
Words KeyOf(const CallDescription& call);

// Equal for calls of which the Meta kernel is believed once it was right of one: those that differ in extents above 1
// and in strides alone.
Words ProofOf(const CallDescription& call);

// Equal for calls of which the rule of shape is believed once it was right of one: those of one kind, as shape_rule.h
// has it.
Words KindOf(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

}  // namespace torch_lazy::lazy
