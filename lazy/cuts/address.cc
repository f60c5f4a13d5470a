// SPDX-License-Identifier: Apache-2.0
// What PyTorch gets when it asks a lazy storage for its address: Note [Mutable access] in trace/placeholder.h.
#include <c10/core/CPUAllocator.h>

#include "lazy/cuda/graph_result.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/trace/placeholder.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

void DeleteStorage(void* content) { delete static_cast<c10::Storage*>(content); }

}  // namespace

c10::DataPtr StorageAllocator::allocate(size_t size_bytes) {
  LazyStorageImpl* storage = static_cast<LazyStorageImpl*>(this);
  const c10::Device device = storage->device();
  if (!HasPlaceholder(storage) || size_bytes != storage->nbytes()) {
    const OnDevice on(device.index());
    c10::DataPtr memory = c10::GetAllocator(EagerDevice().type())
                              ->allocate(size_bytes);  // a request for memory that has nothing to do with ours
    memory.unsafe_set_device(device);
    return memory;
  }
  c10::Storage content = Sync(storage, "data_ptr", /*writes=*/true);
  storage->Expose();
  MoveOut(content.unsafeGetStorageImpl());
  GiveBackAccess();
  void* const address = content.mutable_data();
  return c10::DataPtr(address, new c10::Storage(std::move(content)), &DeleteStorage, device);
}

void StorageAllocator::copy_data(void* to, const void* from, size_t size_bytes) const {
  if (IsPlaceholder(from)) return;
  c10::GetAllocator(EagerDevice().type())->copy_data(to, from, size_bytes);
}

}  // namespace torch_lazy::lazy
