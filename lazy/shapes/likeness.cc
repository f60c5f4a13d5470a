// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/likeness.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "lazy/calls/describer.h"
#include "lazy/eager/geometry.h"

namespace torch_lazy::lazy {
namespace {

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

bool IsRowMajor(const at::Tensor& tensor) {
  int64_t stride = 1;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (tensor.stride(d) != stride) return false;
    stride *= std::max<int64_t>(tensor.size(d), 1);
  }
  return true;
}

// The order of the strides, and whether they leave neither gaps nor overlaps; 0 if row-major. The stride of a dimension
// of one element says nothing of where elements lie, but results may take it over.
int64_t LayoutOf(const at::Tensor& tensor) {
  if (IsRowMajor(tensor)) return 0;
  c10::SmallVector<int64_t, 6> order(static_cast<size_t>(tensor.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return tensor.stride(a) > tensor.stride(b); });
  int64_t layout = 1;
  for (const int64_t dim : order)
    layout = (layout << 4 | dim << 1 | (tensor.stride(dim) == 0)) & INT64_C(0xffffffffffff);
  return layout << 1 | tensor.is_non_overlapping_and_dense();
}

void PushTensor(const at::Tensor& tensor, Words* kind) {
  if (!tensor.defined()) return kind->push_back(-1);
  const int64_t bits = tensor.is_conj() | tensor.is_neg() << 1 | tensor.is_privateuseone() << 2 |
                       tensor.unsafeGetTensorImpl()->is_wrapped_number() << 3;
  kind->push_back(static_cast<int64_t>(tensor.scalar_type()) | bits << 8 | tensor.dim() << 16);
  kind->push_back(LayoutOf(tensor));
  for (const int64_t size : tensor.sizes()) kind->push_back(std::min<int64_t>(size, 2));
}

// An operator may refuse some.
bool IsDType(const Op& op, size_t arg) {
  c10::TypePtr type = op.handle.schema().arguments()[arg].real_type();
  if (type->kind() == c10::TypeKind::OptionalType) type = type->castRaw<c10::OptionalType>()->getElementType();
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

// How many follow one another that are alike does not matter: an LSTM puts as many outputs together as there are time
// steps.
void PushTensors(c10::ArrayRef<c10::IValue> list, Words* kind) {
  Words last;
  for (const c10::IValue& item : list) {
    Words words;
    PushTensor(item.isTensor() ? item.toTensor() : at::Tensor(), &words);
    if (words != last) kind->insert(kind->end(), words.begin(), words.end());
    last = std::move(words);
  }
}

}  // namespace

Words KeyOf(const CallDescription& call) {
  Words key = WordsWithoutPlaces(call);
  PushSharing(call, &key);
  return key;
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

Words KindOf(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  Words kind = {call.words[0]};
  const c10::IValue* args = stack.data() + (stack.size() - op.args.size());
  for (size_t a = 0; a < op.args.size(); ++a) {
    const c10::IValue& value = args[a];
    kind.push_back(static_cast<int64_t>(op.args[a].kind) << 1 | value.isNone());
    if (value.isTensor()) {
      PushTensor(value.toTensor(), &kind);
    } else if (op.args[a].kind == ArgKind::kTensorList || op.args[a].kind == ArgKind::kOptionalTensorList) {
      PushTensors(value.toListRef(), &kind);
    } else if (value.isString()) {
      kind.insert(kind.end(), value.toStringRef().begin(), value.toStringRef().end());
    } else if (value.isInt() && IsDType(op, a)) {
      kind.push_back(value.toInt());
    } else if (value.isScalar()) {
      kind.push_back(static_cast<int64_t>(value.toScalar().type()));
      if (value.isBool()) kind.push_back(value.toBool());
      if (op.Has(kRefusesNumbers) && !value.isComplexDouble())
        kind.push_back(std::bit_cast<int64_t>(value.toScalar().toDouble()));
    } else if (value.isList()) {
      kind.push_back(static_cast<int64_t>(value.toListRef().size()));
    }
  }
  PushSharing(call, &kind);
  return kind;
}

}  // namespace torch_lazy::lazy
