// SPDX-License-Identifier: Apache-2.0
// What PyTorch gets when it asks a lazy storage for its address: Note [Mutable access] in torch_compat/storage_hook.h.
#include <utility>

#include <c10/core/CPUAllocator.h>

#include "lazy/cuda/graph_result.h"
#include "lazy/cuts/cut.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/trace/placeholder.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {
namespace {

void DeleteStorage(void* content) { delete static_cast<c10::Storage*>(content); }

}  // namespace

c10::DataPtr LazyStorageImpl::Answer() {
  c10::Storage now = Sync(this, "data_ptr", /*writes=*/true);
  Expose();
  MoveOut(now.unsafeGetStorageImpl());
  void* const address = now.mutable_data();
  return c10::DataPtr(address, new c10::Storage(std::move(now)), &DeleteStorage, device());
}

// Both addresses came from Answer(), so both storages are exposed. Any other address is nobody's content.
void LazyStorageImpl::TakeSwapped() {
  c10::Storage former;  // ended outside the lock
  while (true) {
    std::shared_ptr<Trace> trace;
    {
      const Locked lock(DeviceLock());
      if (!IsSwapped()) return;
      if (touches.empty()) {
        ForgetEager();
        const bool is_answer = data_ptr().get_deleter() == &DeleteStorage;
        if (is_answer) former = std::exchange(content, *static_cast<c10::Storage*>(data_ptr().get_context()));
        KeepAddress();
        return;
      }
      trace = touches.front().trace;
      CheckNotFailed(*trace);
    }
    CutAndRun(trace, "swapped");
  }
}

c10::DataPtr LazyStorageImpl::NewMemory(size_t size_bytes) {
  const OnDevice on(device().index());
  c10::DataPtr memory = c10::GetAllocator(EagerDevice().type())->allocate(size_bytes);
  memory.unsafe_set_device(device());
  return memory;
}

void LazyStorageImpl::copy_data(void* to, const void* from, size_t size_bytes) const {
  if (IsPlaceholder(from)) return;
  c10::GetAllocator(EagerDevice().type())->copy_data(to, from, size_bytes);
}

}  // namespace torch_lazy::lazy
