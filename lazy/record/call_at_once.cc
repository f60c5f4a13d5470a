// SPDX-License-Identifier: Apache-2.0
#include "lazy/record/call_at_once.h"

#include <algorithm>

#include "lazy/eager/composite_tensors.h"
#include "lazy/eager/current_device.h"

namespace torch_lazy::lazy {
namespace {

bool IsNumberOfHost(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.dim() == 0 && IsDense(tensor); }

void CopyBits(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_conj()) to.unsafeGetTensorImpl()->_set_conj(true);
  if (from.is_neg()) to.unsafeGetTensorImpl()->_set_neg(true);
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) to.unsafeGetTensorImpl()->set_wrapped_number(true);
}

}  // namespace

at::Tensor CallAtOnce::EagerOf(const at::Tensor& tensor, bool written) {
  if (!tensor.defined()) return tensor;
  LazyStorageImpl* const storage =
      LazyStorageImpl::Of(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
  if (storage == nullptr && !written && IsNumberOfHost(tensor)) {
    keys_ = keys_ | tensor.key_set();
    return tensor;
  }
  at::Tensor eager;
  if (storage != nullptr && storage->device().index() == CurrentDevice()) eager = storage->EagerOn(tensor);
  if (!eager.defined()) {
    is_short_ = false;
    return eager;
  }
  if (written) storage->WasWritten();
  memory_.push_back({storage->content.unsafeGetStorageImpl(), storage});
  keys_ = keys_ | eager.key_set();
  return eager;
}

at::Tensor CallAtOnce::Lazy(at::Tensor result) {
  if (!result.defined()) return result;
  TORCH_INTERNAL_ASSERT(result.is_cpu() && result.has_storage(), op_.name, ": a result that is no tensor of the host");
  const auto known = std::ranges::find(memory_, result.storage().unsafeGetStorageImpl(), &Memory::eager);
  const bool is_new = known == memory_.end();
  c10::Storage storage = is_new ? MakeStorage(result.storage(), /*exposed=*/false)
                                : c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(known->lazy));
  auto* const impl = static_cast<LazyStorageImpl*>(storage.unsafeGetStorageImpl());
  at::Tensor lazy =
      MakeTensor(std::move(storage), result.scalar_type(), result.sizes(), result.strides(), result.storage_offset());
  CopyBits(result, lazy);
  if (is_new) {
    memory_.push_back({result.storage().unsafeGetStorageImpl(), impl});
    impl->KeepEager(std::move(result), lazy);  // nobody else has the storage yet
  }
  return lazy;
}

}  // namespace torch_lazy::lazy
