// SPDX-License-Identifier: Apache-2.0
// The geometry of a call's results before it runs.
//
// A call whose words were seen before returns what it returned then (learned). A new size of a call whose operator and
// dtypes have run before is asked of the operator's Meta kernel, which is the code that eager itself uses for shapes and
// errors. Anything else must run at once.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/stack.h>

#include "lazy/call.h"
#include "lazy/trie.h"

namespace torch_lazy::lazy {

// Null: unknown, run the call. Throws the user's errors as eager does. The device lock is not held.
std::shared_ptr<const CallShape> ShapeOfCall(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

// What a call shows of itself once it has run without an error: operator, the dtype and rank of each operand, whether it
// is empty, and the kinds of the numbers.
std::vector<int64_t> ProofOf(const Op& op, const CallDescription& call);

// True if the same call was run at once, and nothing could be learned from it: it will always be run at once.
bool HasNoShape(const CallDescription& call);

// The call has run; `shape` is what it returned, null if it must never be recorded.
void Learn(const CallDescription& call, std::vector<int64_t> proof, std::shared_ptr<const CallShape> shape);

}  // namespace torch_lazy::lazy
