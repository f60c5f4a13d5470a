// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/shapes.h"

#include <algorithm>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "lazy/shapes/elementwise_shape.h"
#include "lazy/shapes/learned_shapes.h"
#include "lazy/shapes/meta_shape.h"
#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::lazy {
namespace {

using Shape = std::shared_ptr<const CallShape>;

// Writes to some of what it reads: the user's error, which ATen raises when it sees the memory, and only of dense
// tensors.
bool OverlapsPartly(const CallDescription& call) {
  for (const CallOperand& written : call.operands) {
    if (!written.written || !written.tensor->is_non_overlapping_and_dense()) continue;
    for (const CallOperand& other : call.operands) {
      if (other.storage != written.storage || !other.tensor->is_non_overlapping_and_dense()) continue;
      const Geometry one = GeometryOf(*written.tensor), two = GeometryOf(*other.tensor);
      const bool is_same = one.offset == two.offset && SizeBytes(one) == SizeBytes(two) && one.strides == two.strides;
      if (!is_same && Overlap(one, two)) return true;
    }
  }
  return false;
}

// Writes several times to one place: ATen refuses that, or knows why not.
bool WritesOverItself(const CallDescription& call) {
  return std::any_of(call.operands.begin(), call.operands.end(), [](const CallOperand& operand) {
    return operand.written && at::has_internal_overlap(operand.tensor) == at::MemOverlap::Yes;
  });
}

// An `out=` of other sizes than a pointwise result: ATen warns that it resizes, and so would a Meta kernel before.
bool ResizesPointwise(const Op& op, const CallDescription& call) {
  if (!op.pointwise || !op.handle.schema().arguments().back().is_out()) return false;
  at::DimVector sizes;
  for (const CallOperand& operand : call.operands) {
    if (operand.written || operand.item >= 0) continue;
    sizes = at::infer_size_dimvector(sizes, operand.tensor->sizes());
  }
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const CallOperand& operand) {
    return operand.written && operand.tensor->sizes() != at::IntArrayRef(sizes);
  });
}

// Bool, integer, floating, complex.
int Category(at::ScalarType type) {
  return c10::isComplexType(type) ? 3 : c10::isFloatingType(type) ? 2 : type == at::kBool ? 0 : 1;
}

int CategoryOf(const c10::IValue& number) {
  if (number.isTensor()) return number.toTensor().defined() ? Category(number.toTensor().scalar_type()) : 0;
  if (!number.isList()) return Category(number.toScalar().type());
  int highest = 0;
  for (const c10::IValue& item : number.toListRef()) highest = std::max(highest, CategoryOf(item));
  return highest;
}

// A floating number among integers, say. Kernels of eager's may refuse it (`x.mul_(0.5)`); Meta kernels from Python do
// not.
bool HasNumberAboveTensors(const CallDescription& call) {
  int tensors = 0;
  for (const CallOperand& operand : call.operands) {
    tensors = std::max(tensors, Category(c10::typeMetaToScalarType(operand.tensor->dtype())));
  }
  return std::any_of(call.numbers.begin(), call.numbers.end(),
                     [&](const CallNumber& number) { return CategoryOf(number.value) > tensors; });
}

bool MayAskMeta(const Op& op, const CallDescription& call) {
  return op.has_meta && op.takes_tensors && !HasNumberAboveTensors(call) && !ResizesPointwise(op, call);
}

bool MayAskRule(const Op& op) { return op.shape_rule != nullptr || op.pointwise; }

bool Equal(const CallShape& one, const CallShape& other) {
  return one.list_sizes == other.list_sizes && one.results == other.results;
}

// A call of which nothing is known.
struct Question {
  const Op& op;
  const CallDescription& call;
  const torch::jit::Stack& stack;
  bool may_ask_meta = MayAskMeta(op, call);
};

Shape FromIterator(const Question& q) { return q.may_ask_meta ? ElementwiseShape(q.op, q.call, q.stack) : nullptr; }

Shape FromRule(const Question& q) {
  const bool is_believed = MayAskRule(q.op) && Learned().in_rules.Holds(KindOf(q.op, q.call, q.stack));
  return is_believed ? RuledShape(q.op, q.call, q.stack) : nullptr;
}

// Null if the operator's rule knows that eager refuses the call.
Shape AskMeta(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  return op.Has(kMetaTakesMore) && !IsTakenByRule(op, call, stack) ? nullptr : MetaShape(op, call, stack);
}

// A rule is tested by the answer, since it takes a tenth of the time.
Shape FromMeta(const Question& q) {
  if (!q.may_ask_meta) return nullptr;
  if (!IsPlainArithmetic(q.op, q.call) && !Learned().in_meta_kernels.Holds(ProofOf(q.call))) return nullptr;
  const Shape shape = AskMeta(q.op, q.call, q.stack);
  if (shape == nullptr || !MayAskRule(q.op)) return shape;
  const Shape ruled = RuledShape(q.op, q.call, q.stack);
  if (ruled != nullptr) Learned().in_rules.Test(KindOf(q.op, q.call, q.stack), Equal(*ruled, *shape));
  return shape;
}

// The ways to a shape, the fastest first: each has an answer, or none. A call that none answers runs at once.
constexpr Shape (*kWays[])(const Question&) = {FromIterator, FromRule, FromMeta};

}  // namespace

Shape ShapeOfCall(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  if (OverlapsPartly(call) || WritesOverItself(call)) return nullptr;
  Words key = KeyOf(call);
  if (const std::optional<Shape> known = Learned().of_calls.Find(key)) return *known;
  const Question question{op, call, stack};
  for (const auto& way : kWays) {
    const Shape shape = way(question);
    if (shape == nullptr) continue;
    Learned().of_calls.Add(std::move(key), shape);
    return shape;
  }
  return nullptr;
}

bool HasNoShape(const CallDescription& call) {
  const std::optional<Shape> known = Learned().of_calls.Find(KeyOf(call));
  return known.has_value() && *known == nullptr;
}

Lesson::Lesson(const Op& op, const CallDescription& call, const torch::jit::Stack& stack)
    : op_(op), call_(call), key_(KeyOf(call)), proof_(ProofOf(call)) {
  if (MayAskRule(op)) kind_ = KindOf(op, call, stack);
  asks_rule_ = MayAskRule(op) && !Learned().in_rules.IsTested(kind_);
  asks_meta_ = MayAskMeta(op, call) && !Learned().in_meta_kernels.IsTested(proof_);
  if (asks_rule_ || asks_meta_) arguments_.assign(stack.end() - static_cast<ptrdiff_t>(op.args.size()), stack.end());
}

void Lesson::Learn(Shape shape) {
  Shape ruled, meta;
  if (shape != nullptr && asks_rule_) ruled = RuledShape(op_, call_, arguments_);
  // Python has Meta kernels of its own for products, and imports sympy for the first of them: a third of a second.
  const bool is_ruled = ruled != nullptr && Equal(*ruled, *shape);
  if (shape != nullptr && asks_meta_ && !is_ruled) meta = AskMeta(op_, call_, arguments_);
  if (ruled != nullptr) Learned().in_rules.Test(std::move(kind_), is_ruled);
  if (meta != nullptr) Learned().in_meta_kernels.Test(std::move(proof_), Equal(*meta, *shape));
  Learned().of_calls.Add(std::move(key_), std::move(shape));
}

}  // namespace torch_lazy::lazy
