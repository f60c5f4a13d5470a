// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/storage.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <c10/core/TensorImpl.h>

#include "lazy/eager/composite_tensors.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/geometry.h"
#include "lazy/host/lock.h"
#include "lazy/trace/placeholder.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {
namespace {

std::atomic<uint64_t> num_storages{1};              // 0 is none
constexpr uint64_t kRewritten = uint64_t{1} << 63;  // in stamps, which begin as the storage's number

}  // namespace

LazyStorageImpl::LazyStorageImpl(size_t size_bytes, int device_index)
    : HookedStorage(size_bytes, PlaceholderOf(this),
                    c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device_index))),
      serial_(num_storages.fetch_add(1, std::memory_order_relaxed)),
      stamp_(serial_) {}

uint64_t LazyStorageImpl::NextStamp() {
  static uint64_t num_writes = 0;  // under the device lock
  return kRewritten | ++num_writes;
}

uint64_t LazyStorageImpl::NextSerial() { return num_storages.load(std::memory_order_relaxed); }

void LazyStorageImpl::release_resources() {
  LeaveTraces();
  released_ = true;  // nobody has the storage any more: it cannot be touched again
  Disarm();
  StorageImpl::release_resources();
}

LazyStorageImpl::~LazyStorageImpl() {
  if (!released_) LeaveTraces();
  Disarm();
}

namespace {

// But for what the keys of tensors say: whether they are dense, conjugate, or negative.
bool AreAlike(const c10::TensorImpl& a, const c10::TensorImpl& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset() && a.is_wrapped_number() == b.is_wrapped_number();
}

}  // namespace

const at::Tensor& LazyStorageImpl::EagerOn(const at::Tensor& tensor) {
  static const at::Tensor* const none = new at::Tensor;
  if (!touches.empty() || !content || IsSwapped()) return *none;
  const c10::TensorImpl& like = *tensor.unsafeGetTensorImpl();
  if (eager_.defined() && eager_keys_ == like.key_set() && AreAlike(*eager_.unsafeGetTensorImpl(), like)) return eager_;
  if (!IsDense(tensor) || IsNamed(tensor)) return *none;
  at::Tensor made = Alias(content, tensor.scalar_type(), like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) made.unsafeGetTensorImpl()->_set_conj(true);
  if (like.is_neg()) made.unsafeGetTensorImpl()->_set_neg(true);
  if (like.is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  KeepEager(std::move(made), tensor);
  return eager_;
}

// The device lock is held as own, if only the thread's trace has touched the storage.
bool LazyStorageImpl::LeaveOwnTrace(c10::SmallVector<Touch, 1>* left) {
  const Trace* const newest = NewestOfThread().get();
  if (newest == nullptr) return false;
  const RecordingLock own(/*alone=*/false);
  if (std::ranges::any_of(touches, [&](const Touch& touch) { return touch.trace.get() != newest; })) return false;
  LeaveAll(left);
  return true;
}

void LazyStorageImpl::LeaveAll(c10::SmallVector<Touch, 1>* left) {
  for (const Touch& touch : touches) touch.trace->ForgetOwner(touch.slot);
  *left = std::move(touches);  // takes no memory, which a swap may
  writer = nullptr;
}

void LazyStorageImpl::LeaveTraces() {
  if (!had_traces) return;
  c10::SmallVector<Touch, 1> left;  // ended outside the lock
  if (LeaveOwnTrace(&left)) return;
  const Locked alone(DeviceLock());
  LeaveAll(&left);
}

at::Tensor MakeTensor(c10::Storage storage, at::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      int64_t offset) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

c10::Storage MakeStorage(size_t size_bytes, at::ScalarType unwritten) {
  auto storage = c10::make_intrusive<LazyStorageImpl>(size_bytes, CurrentDevice());
  storage->unwritten = unwritten;
  return c10::Storage(std::move(storage));
}

c10::Storage MakeStorage(c10::Storage content, bool exposed) {
  auto storage = c10::make_intrusive<LazyStorageImpl>(content.nbytes(), CurrentDevice());
  storage->content = std::move(content);
  if (exposed) storage->Expose();
  return c10::Storage(std::move(storage));
}

}  // namespace torch_lazy::lazy
