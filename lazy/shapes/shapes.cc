// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/shapes.h"

#include <algorithm>
#include <mutex>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "absl/container/flat_hash_map.h"
#include "base/flags.h"
#include "lazy/calls/describer.h"
#include "lazy/shapes/elementwise_shape.h"
#include "lazy/shapes/meta_shape.h"
#include "lazy/shapes/shape_rule.h"

namespace torch_lazy::lazy {
namespace {

using Words = std::vector<int64_t>;

struct LearnedShapes {
  std::mutex lock;
  absl::flat_hash_map<Words, std::shared_ptr<const CallShape>> by_call;
  absl::flat_hash_map<Words, bool> proofs;  // false: the Meta kernel gave something else than what came out
  absl::flat_hash_map<Words, bool> ruled;   // by kind of call; false: so did the rule
};

LearnedShapes& Learned() {
  static LearnedShapes* const learned = new LearnedShapes;
  return *learned;
}

// Which operands share a storage that is written, and whether in the same place: an operator may refuse to read what it
// writes.
void PushSharing(const CallDescription& call, Words* words) {
  for (size_t i = 0; i < call.operands.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const CallOperand &one = call.operands[i], &other = call.operands[j];
      if ((!one.written && !other.written) || one.storage != other.storage) continue;
      const size_t overlap = Overlap(GeometryOf(*one.tensor), GeometryOf(*other.tensor));
      words->push_back(static_cast<int64_t>(i << 32 | j << 1 | overlap));
    }
  }
}

// All words of the call but those that say where in which storage its operands lie.
Words WordsWithoutPlaces(const CallDescription& call) {
  Words words(call.words.begin(), call.words.end());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const CallOperand& operand = call.operands[i];
    const auto offset = words.begin() + call.offset_words[i];
    *offset = 0;
    if (IsPart(*operand.tensor, *operand.storage)) *(offset - 2 * operand.tensor->dim() - 1) = 0;
  }
  return words;
}

// What the geometry of results depends on, and whether eager takes the call.
Words KeyOf(const CallDescription& call) {
  Words key = WordsWithoutPlaces(call);
  PushSharing(call, &key);
  return key;
}

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

// With a class in the place of each extent and nothing in that of strides.
Words ProofOf(const CallDescription& call) {
  Words proof = WordsWithoutPlaces(call);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const auto offset = proof.begin() + call.offset_words[i];
    const auto strides = offset - call.operands[i].tensor->dim(), sizes = strides - call.operands[i].tensor->dim();
    for (auto size = sizes; size != strides; ++size) *size = std::min<int64_t>(*size, 2);
    std::fill(strides, offset, 0);
  }
  PushSharing(call, &proof);
  return proof;
}

// What the table has for the key, now or from now on. Its lock is held. What is forgotten will be learned again.
template <typename Value>
Value& Remember(absl::flat_hash_map<Words, Value>* table, Words key, Value value) {
  if (static_cast<int64_t>(table->size()) >= base::Number(base::Option::kMaxKnownOps)) table->clear();
  return table->try_emplace(std::move(key), std::move(value)).first->second;
}

// The kind of a call for which there may be a rule.
Words RuledKindOf(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  Words kind = KindOf(op, call, stack);
  PushSharing(call, &kind);
  return kind;
}

// Believed if it is in the table as true.
bool Holds(const absl::flat_hash_map<Words, bool>& proofs, const Words& proof) {
  std::lock_guard<std::mutex> lock(Learned().lock);
  const auto found = proofs.find(proof);
  return found != proofs.end() && found->second;
}

bool MayAskMeta(const Op& op, const CallDescription& call) {
  return op.has_meta && op.takes_tensors && !HasNumberAboveTensors(call) && !ResizesPointwise(op, call);
}

bool Equal(const CallShape& one, const CallShape& other) {
  return one.list_sizes == other.list_sizes && one.results == other.results;
}

// Whether the rule gives what is known to be right.
void LearnRule(const Op& op, const CallDescription& call, const torch::jit::Stack& stack, const CallShape& shape) {
  const std::shared_ptr<const CallShape> rules = RuledShape(op, call, stack);
  if (rules == nullptr) return;
  std::lock_guard<std::mutex> lock(Learned().lock);
  Remember(&Learned().ruled, RuledKindOf(op, call, stack), true) &= Equal(*rules, shape);
}

bool MayAskRule(const Op& op) { return op.shape_rule != nullptr || op.pointwise; }

}  // namespace

bool HasNoShape(const CallDescription& call) {
  LearnedShapes& learned = Learned();
  std::lock_guard<std::mutex> lock(learned.lock);
  const auto found = learned.by_call.find(KeyOf(call));
  return found != learned.by_call.end() && found->second == nullptr;
}

std::shared_ptr<const CallShape> ShapeOfCall(const Op& op, const CallDescription& call,
                                             const torch::jit::Stack& stack) {
  LearnedShapes& learned = Learned();
  if (OverlapsPartly(call) || WritesOverItself(call)) return nullptr;
  const Words key = KeyOf(call);
  {
    std::lock_guard<std::mutex> lock(learned.lock);
    auto found = learned.by_call.find(key);
    if (found != learned.by_call.end()) return found->second;
  }
  const bool may_ask_meta = MayAskMeta(op, call);
  std::shared_ptr<const CallShape> shape;
  if (may_ask_meta) shape = ElementwiseShape(op, call, stack);
  if (shape == nullptr && MayAskRule(op) && Holds(learned.ruled, RuledKindOf(op, call, stack)))
    shape = RuledShape(op, call, stack);
  if (shape == nullptr && may_ask_meta && (IsPlainArithmetic(op, call) || Holds(learned.proofs, ProofOf(call)))) {
    shape = MetaShape(op, call, stack);
    if (shape != nullptr && MayAskRule(op)) LearnRule(op, call, stack, *shape);  // it takes a tenth of the time
  }
  if (shape != nullptr) {
    std::lock_guard<std::mutex> lock(learned.lock);
    Remember(&learned.by_call, key, shape);
  }
  return shape;
}

Lesson::Lesson(const Op& op, const CallDescription& call, const torch::jit::Stack& stack)
    : op_(op), call_(call), key_(KeyOf(call)), proof_(ProofOf(call)) {
  LearnedShapes& learned = Learned();
  if (MayAskRule(op)) kind_ = RuledKindOf(op, call, stack);
  std::lock_guard<std::mutex> lock(learned.lock);
  asks_rule_ = MayAskRule(op) && !learned.ruled.contains(kind_);
  asks_meta_ = MayAskMeta(op, call) && !learned.proofs.contains(proof_);
  if (asks_rule_ || asks_meta_) arguments_.assign(stack.end() - static_cast<ptrdiff_t>(op.args.size()), stack.end());
}

void Lesson::Learn(std::shared_ptr<const CallShape> shape) {
  std::shared_ptr<const CallShape> rules, metas;
  if (shape != nullptr && asks_rule_) rules = RuledShape(op_, call_, arguments_);
  // Python has Meta kernels of its own for products, and imports sympy for the first of them: a third of a second.
  const bool is_ruled = rules != nullptr && Equal(*rules, *shape);
  if (shape != nullptr && asks_meta_ && !is_ruled) metas = MetaShape(op_, call_, arguments_);
  LearnedShapes& learned = Learned();
  std::lock_guard<std::mutex> lock(learned.lock);
  if (rules != nullptr) Remember(&learned.ruled, std::move(kind_), true) &= Equal(*rules, *shape);
  if (metas != nullptr) Remember(&learned.proofs, std::move(proof_), true) &= Equal(*metas, *shape);
  Remember(&learned.by_call, std::move(key_), std::move(shape));
}

}  // namespace torch_lazy::lazy
