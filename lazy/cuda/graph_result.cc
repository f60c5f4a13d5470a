// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda/graph_result.h"

#include "lazy/eager/eager_device.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/memory.h"

namespace torch_lazy::lazy {
namespace {

// What a result that somebody holds is given.
struct Tenancy {
  std::shared_ptr<c10::Storage> memory;  // the CUDA graph's
  int lane;
};

void LetGo(void* context) { delete static_cast<Tenancy*>(context); }

const Tenancy& TenancyOf(const c10::Storage& content) {
  return *static_cast<const Tenancy*>(content.data_ptr().get_context());
}

}  // namespace

c10::Storage CudaGraphResult::Lend(int lane) {
  const size_t size_bytes = memory_->nbytes();
  c10::Storage content(c10::Storage::use_byte_size_t(), size_bytes,
                       c10::DataPtr(memory_->mutable_data(), new Tenancy{memory_, lane}, &LetGo, memory_->device()),
                       memory_->allocator(), /*resizable=*/true);
  tenant_ = c10::weak_intrusive_ptr<c10::StorageImpl>(content.getWeakStorageImpl());
  return content;
}

void CudaGraphResult::Vacate() {
  if (const c10::intrusive_ptr<c10::StorageImpl> tenant = tenant_.lock()) MoveOut(tenant.get());
}

bool IsLent(const c10::Storage& content) { return content && content.data_ptr().get_deleter() == &LetGo; }

int LaneOf(const c10::Storage& content) { return IsLent(content) ? TenancyOf(content).lane : kMainStream; }

const c10::Storage& MemoryOf(const c10::Storage& content) {
  return IsLent(content) ? *TenancyOf(content).memory : content;
}

void MoveOut(c10::StorageImpl* content) {
  c10::DataPtr& pointer = content->_mutable_data_ptr_no_checks();
  if (pointer.get_deleter() != &LetGo) return;
  c10::Storage memory = NewContent(content->nbytes());
  CopyContent(memory, c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(content)), content->nbytes());
  content->set_data_ptr_noswap(std::move(memory.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
}

}  // namespace torch_lazy::lazy
