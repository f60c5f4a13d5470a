// SPDX-License-Identifier: Apache-2.0
// Resizing, and putting another storage under a tensor.
#include "device/eager_overrides/resize.h"

#include <cstring>

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/set_native.h>

#include "device/eager_overrides/kernels.h"
#include "device/fork.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/memory.h"
#include "lazy/host/lock.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/unwritten.h"

namespace torch_lazy::device {
namespace {

// Gives the tensor these sizes, and makes its storage larger where they do not fit. No strides: contiguous.
void SetSizes(const at::Tensor& tensor, c10::IntArrayRef sizes, at::OptionalIntArrayRef strides) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  at::native::resize_impl_cpu_(impl, sizes, strides, /*resize_storage=*/false);
  if (impl->numel() == 0) return;
  const size_t size_bytes = at::detail::computeStorageNbytes(impl->sizes(), impl->strides(), impl->itemsize(),
                                                             static_cast<size_t>(impl->storage_offset()));
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (size_bytes > storage->nbytes()) ResizeStorage(storage, size_bytes);
}

const at::Tensor& Resize(const at::Tensor& self, c10::IntArrayRef sizes,
                         std::optional<c10::MemoryFormat> memory_format) {
  CheckFork();
  const int64_t old_size_bytes = static_cast<int64_t>(self.storage().nbytes());
  SetSizes(self, sizes, std::nullopt);
  if (memory_format.has_value()) {
    TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*memory_format);
  }
  if (lazy::FillsUnwritten()) at::native::fill_resize_deterministic_(self, old_size_bytes);
  return self;
}

at::Tensor& SetStorage(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  SetSizes(self, sizes, strides.data() != nullptr ? at::OptionalIntArrayRef(strides) : std::nullopt);
  return self;
}

at::Tensor& SetNothing(at::Tensor& self) {
  const lazy::OnDevice on(self.device().index());
  return SetStorage(self, lazy::MakeStorage(/*size_bytes=*/0), /*offset=*/0, /*sizes=*/{0}, /*strides=*/{});
}

}  // namespace

void ResizeStorage(c10::StorageImpl* storage, size_t size_bytes) {
  lazy::LazyStorageImpl* lazy_storage = lazy::LazyStorageImpl::Of(storage);
  TORCH_CHECK(lazy_storage != nullptr, "lazy: a storage made of foreign memory cannot be resized");
  const lazy::OnDevice on(storage->device().index());
  const c10::Storage old = lazy::Sync(lazy_storage, "resize", /*writes=*/true);
  c10::Storage content = lazy::NewContent(size_bytes);
  if (size_bytes != 0 && old.nbytes() != 0) {
    lazy::CopyContent(content, old, std::min(size_bytes, old.nbytes()));
  }
  const lazy::Locked lock(lazy::DeviceLock());
  lazy_storage->ForgetEager();
  lazy_storage->content = std::move(content);
  lazy_storage->set_nbytes(size_bytes);
  lazy_storage->Arm();
}

void RegisterResizing(torch::Library& aten) {
  aten.impl("resize_", TORCH_FN(Resize));
  aten.impl("set_", TORCH_FN(SetNothing));
  aten.impl("set_.source_Storage", TORCH_FN(at::native::set_));
  aten.impl("set_.source_Storage_storage_offset", TORCH_FN(SetStorage));
  aten.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
}

}  // namespace torch_lazy::device
