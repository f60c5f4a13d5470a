// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/unwritten.h"

#include <mutex>

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ParallelGuard.h>

#include "lazy/eager/geometry.h"
#include "lazy/eager/memory.h"
#include "lazy/host/lock.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

struct Scopes {
  std::mutex lock;
  int open = 0;
  bool is_filled = false;  // the setting outside of them
};

Scopes& TheScopes() {
  static auto* const scopes = new Scopes;
  return *scopes;
}

}  // namespace

bool FillsUnwritten() {
  const at::Context& context = at::globalContext();
  if (!context.deterministicAlgorithms()) return false;
  Scopes& scopes = TheScopes();
  const std::lock_guard<std::mutex> guard(scopes.lock);
  return scopes.open > 0 ? scopes.is_filled : context.deterministicFillUninitializedMemory();
}

c10::Storage UnwrittenContent(size_t size_bytes, at::ScalarType dtype) {
  c10::Storage content = NewContent(size_bytes);
  if (dtype == at::ScalarType::Undefined || size_bytes == 0) return content;
  const int64_t size = static_cast<int64_t>(size_bytes / c10::elementSize(dtype));
  const c10::impl::ForceDispatchKeyGuard no_modes{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::ParallelGuard serial(true);  // a thread of ours may be here
  at::Tensor all = Alias(content, {.dtype = dtype, .sizes = {size}, .strides = {1}});
  at::native::fill_empty_deterministic_(all);
  return content;
}

void WillOverwrite(const at::Tensor& tensor) {
  LazyStorageImpl* const storage = LazyStorageImpl::Of(tensor);
  if (storage == nullptr || storage->unwritten == at::ScalarType::Undefined) return;
  if (tensor.nbytes() != storage->nbytes() || !tensor.is_non_overlapping_and_dense()) return;
  Locked lock(DeviceLock());
  storage->unwritten = at::ScalarType::Undefined;
}

LeaveUnwritten::LeaveUnwritten() : is_needed_(at::globalContext().deterministicAlgorithms()) {
  if (!is_needed_) return;
  Scopes& scopes = TheScopes();
  const std::lock_guard<std::mutex> guard(scopes.lock);
  if (scopes.open++ > 0) return;
  scopes.is_filled = at::globalContext().deterministicFillUninitializedMemory();
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

LeaveUnwritten::~LeaveUnwritten() {
  if (!is_needed_) return;
  Scopes& scopes = TheScopes();
  const std::lock_guard<std::mutex> guard(scopes.lock);
  if (--scopes.open == 0) at::globalContext().setDeterministicFillUninitializedMemory(scopes.is_filled);
}

}  // namespace torch_lazy::lazy
