// SPDX-License-Identifier: Apache-2.0
#include "lazy/advance.h"

#include "lazy/closing.h"

namespace torch_lazy::lazy {

void TouchOperands(c10::ArrayRef<CallOperand> operands, c10::ArrayRef<int32_t> slots, const std::shared_ptr<Trace>& trace) {
  for (size_t k = 0; k < operands.size(); ++k) {
    LazyStorageImpl* storage = operands[k].storage;
    if (static_cast<size_t>(slots[k]) == trace->slots.size()) {
      trace->slots.push_back({storage->content, storage, storage->nbytes(), /*external=*/true, /*written=*/false,
                              static_cast<uint32_t>(trace->path.size())});
      trace->slots.back().older = static_cast<bool>(storage->content);
      storage->touches.push_back({trace, slots[k]});
    }
    if (operands[k].written && !trace->slots[slots[k]].written) {
      trace->slots[slots[k]].written = true;
      storage->writer = trace;
      ArmPlaceholder(storage);
    }
  }
}

at::Tensor NewResult(const ResultShape& shape, const std::shared_ptr<Trace>& trace) {
  if (!shape.defined) return at::Tensor();
  c10::Storage storage = MakeStorage(shape.size_bytes);
  LazyStorageImpl* lazy_storage = static_cast<LazyStorageImpl*>(storage.unsafeGetStorageImpl());
  lazy_storage->touches.push_back({trace, static_cast<int32_t>(trace->slots.size())});
  lazy_storage->writer = trace;
  trace->slots.push_back({c10::Storage(), lazy_storage, shape.size_bytes, /*external=*/false, /*written=*/true,
                          static_cast<uint32_t>(trace->path.size())});
  trace->new_bytes += static_cast<int64_t>(shape.size_bytes);
  const Geometry& g = shape.geometry;
  at::Tensor tensor = MakeTensor(std::move(storage), g.dtype, g.sizes, g.strides, g.offset);
  if (g.conj) tensor.unsafeGetTensorImpl()->_set_conj(true);
  if (g.neg) tensor.unsafeGetTensorImpl()->_set_neg(true);
  return tensor;
}

namespace {

// A step's kernels leave little of the trie in the caches, and a prediction waits for each line that it must fetch: ask for
// a node some calls before its turn, and for what it points to when it is there.
void Prefetch(const TrieNode& node, Trace* trace) {
  constexpr size_t kAhead = 5;
  if (trace->path.size() >= kAhead) trace->path[trace->path.size() - kAhead]->ahead = &node;
  if (node.ahead != nullptr) {
    __builtin_prefetch(node.ahead);
    __builtin_prefetch(reinterpret_cast<const char*>(node.ahead) + 64);
  }
  const TrieNode* soon = node.likely != nullptr ? node.likely->likely : nullptr;
  if (soon == nullptr) return;
  __builtin_prefetch(soon->words.data());
  __builtin_prefetch(soon->words.data() + 8);
  __builtin_prefetch(soon->words.data() + 16);
  __builtin_prefetch(soon->operand_slots.data());
  __builtin_prefetch(soon->shape.get());
}

}  // namespace

const char* StepTo(TrieNode* node, bool grown, Trace* trace) {
  trace->at = node;
  Prefetch(*node, trace);
  trace->path.push_back(node);
  return MustCut(trace, grown);
}

}  // namespace torch_lazy::lazy
