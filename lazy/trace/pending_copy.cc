// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/pending_copy.h"

#include <algorithm>

#include "lazy/host/lock.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kMostSearched = 64;  // calls

bool Writes(const TrieNode& call, int32_t slot) {
  return std::ranges::any_of(call.operands, [slot](const NodeOperand& o) { return o.written && o.slot == slot; });
}

const NodeOperand* OperandAt(const TrieNode& call, int arg) {
  const auto found = std::ranges::find_if(call.operands, [arg](const NodeOperand& o) { return o.arg == arg; });
  return found == call.operands.end() ? nullptr : &*found;
}

bool Fills(const Geometry& geometry, size_t size_bytes) {
  int64_t stride = 1;
  for (size_t d = geometry.sizes.size(); d-- > 0; stride *= geometry.sizes[d]) {
    if (geometry.sizes[d] != 1 && geometry.strides[d] != stride) return false;
  }
  return geometry.offset == 0 && static_cast<size_t>(stride) * c10::elementSize(geometry.dtype) == size_bytes;
}

}  // namespace

at::Tensor SourceOfPendingCopy(const at::Tensor& tensor) {
  const Locked lock(DeviceLock());
  const LazyStorageImpl* const storage = LazyStorageImpl::Of(tensor);
  if (storage == nullptr || storage->writer == nullptr) return {};
  const Trace& trace = *storage->writer;
  const auto touch =
      std::ranges::find_if(storage->touches, [&](const LazyStorageImpl::Touch& t) { return t.trace.get() == &trace; });
  if (touch == storage->touches.end() || trace.state != Trace::State::kPending) return {};
  const size_t end = trace.path.size(), begin = end - std::min(end, kMostSearched);
  size_t k = end;
  while (k > begin && !Writes(*trace.path[k - 1], touch->slot)) --k;
  if (k == begin || !trace.path[k - 1]->op->Has(kCopies)) return {};
  const NodeOperand *to = OperandAt(*trace.path[k - 1], 0), *from = OperandAt(*trace.path[k - 1], 1);
  if (to == nullptr || from == nullptr || to->geometry.dtype != from->geometry.dtype || from->geometry.conj ||
      from->geometry.neg || to->geometry.sizes != from->geometry.sizes || !Fills(to->geometry, storage->nbytes()))
    return {};
  for (; k < end; ++k) {
    if (Writes(*trace.path[k], from->slot)) return {};
  }
  LazyStorageImpl* const owner = trace.slots[static_cast<size_t>(from->slot)].owner;
  if (owner == nullptr) return {};
  c10::raw::weak_intrusive_ptr::incref(owner);
  auto source = c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(owner).lock();  // it may be about to end
  if (!source) return {};
  const Geometry& g = from->geometry;
  return MakeTensor(c10::Storage(std::move(source)), g.dtype, g.sizes, g.strides, g.offset);
}

}  // namespace torch_lazy::lazy
