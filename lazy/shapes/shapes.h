// SPDX-License-Identifier: Apache-2.0
// The geometry of a call's results before it runs.
//
// It is asked for in this order; the first answer counts:
// 1. learned: a call whose words were seen before returns what it returned then (learned_shapes.h);
// 2. TensorIterator, for elementwise calls on floating tensors of one type (elementwise_shape.h);
// 3. the operator's rule (shape_rule.h), if it was right of a call like this one;
// 4. the operator's Meta kernel (meta_shape.h), likewise: the code that eager itself uses for shapes and errors;
// 5. nobody: the call runs at once, and teaches what it returned.
#pragma once

#include <memory>

#include <ATen/core/stack.h>

#include "lazy/calls/call.h"
#include "lazy/shapes/likeness.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// Null: unknown, run the call. Throws the user's errors as eager does. The device lock is not held.
std::shared_ptr<const CallShape> ShapeOfCall(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

// A call that runs at once because no shape is known, and what is learned of it. Made before the run, which gives the
// operands away; it keeps them where the rule or the Meta kernel is to be asked, which is after the run: a resize has
// been warned of then.
//
// Its result shows the shape of all calls like it. That it ran at all proves that eager takes calls of its operator, of
// its dtypes and ranks and all that is no extent; but an extent of none or one is a case of its own, and so is reading
// what is written. Of calls that differ in other extents and in strides alone, the Meta kernel is asked from then on,
// if it gave what came out here; and so is the rule, of calls of the same kind. Python's own Meta kernels do not
// always: `pow` of bool is no bool, a norm over dimension -1 keeps one of one element.
class Lesson {
 public:
  Lesson(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

  // What the run has returned. Null: nothing can be learned from it.
  void Learn(std::shared_ptr<const CallShape> shape);

 private:
  const Op& op_;
  const CallDescription& call_;
  Words key_, proof_, kind_;
  bool asks_rule_ = false, asks_meta_ = false;
  torch::jit::Stack arguments_;  // empty if neither is asked
};

// True if the same call was run at once, and nothing could be learned from it: it will always be run at once.
bool HasNoShape(const CallDescription& call);

}  // namespace torch_lazy::lazy
