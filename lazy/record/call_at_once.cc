// SPDX-License-Identifier: Apache-2.0
#include "lazy/record/call_at_once.h"

#include <algorithm>

#include "lazy/eager/composite_tensors.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/memory.h"
#include "lazy/host/lock.h"
#include "lazy/run/run_on_aliases.h"

namespace torch_lazy::lazy {
namespace {

bool IsNumberOfHost(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.dim() == 0 && IsDense(tensor); }

// True if it holds anything that memory may hold.
bool IsUntouched(const LazyStorageImpl& storage) {
  return !storage.content && storage.touches.empty() && !storage.IsSwapped() &&
         storage.unwritten == at::ScalarType::Undefined;
}

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
  if (storage != nullptr && storage->device().index() == CurrentDevice()) {
    if (IsUntouched(*storage)) storage->content = NewResult(storage->nbytes());
    eager = storage->EagerOn(tensor);
  }
  if (!eager.defined()) {
    is_short_ = false;
    return eager;
  }
  if (written) storage->WasWritten();
  memory_.push_back({storage->content.unsafeGetStorageImpl(), storage});
  keys_ = keys_ | eager.key_set();
  return eager;
}

c10::IValue CallAtOnce::Eager(const c10::IValue& boxed) {
  const Arg& arg = op_.args[arg_++];
  const auto eager_of = [&](const c10::IValue& item) -> c10::IValue {
    if (!item.isTensor()) return item;
    if (item.toTensor().requires_grad()) is_short_ = false;  // a kernel may ask
    return is_short_ ? EagerOf(item.toTensor(), arg.written) : at::Tensor();
  };
  if (arg.is_out || boxed.isDevice() || boxed.isGenerator()) is_short_ = false;
  if (arg.kind != ArgKind::kTensorList && arg.kind != ArgKind::kOptionalTensorList) return eager_of(boxed);
  if (!boxed.isList()) return boxed;
  c10::List<c10::IValue> list(boxed.toList().elementType());
  list.reserve(boxed.toListRef().size());
  for (const c10::IValue& item : boxed.toListRef()) list.push_back(eager_of(item));
  return list;
}

c10::IValue CallAtOnce::Lazy(const c10::IValue& boxed) {
  const auto lazy_of = [&](const at::Tensor& result) {
    if (!result.defined() || IsDense(result)) return Lazy(result);
    TORCH_CHECK_NOT_IMPLEMENTED(!result.is_quantized(), op_.name,
                                ": quantized tensors are not supported on device lazy");
    return MakeOfMembers(result, at::Device(at::kPrivateUse1, static_cast<c10::DeviceIndex>(CurrentDevice())),
                         [this](const at::Tensor& member) { return Lazy(member); });
  };
  if (boxed.isTensor()) return lazy_of(boxed.toTensor());
  c10::List<at::Tensor> list;
  list.reserve(boxed.toListRef().size());
  for (const c10::IValue& item : boxed.toListRef()) list.push_back(lazy_of(item.toTensor()));
  return list;
}

at::Tensor CallAtOnce::Lazy(at::Tensor result) {
  if (!result.defined()) return result;
  const c10::Storage& content = result.unsafeGetTensorImpl()->unsafe_storage();
  TORCH_INTERNAL_ASSERT(result.is_cpu() && content, op_.name, ": a result that is no tensor of the host");
  const auto known = std::ranges::find(memory_, content.unsafeGetStorageImpl(), &Memory::eager);
  const bool is_new = known == memory_.end();
  c10::Storage storage = is_new ? MakeStorage(content, /*exposed=*/false)
                                : c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(known->lazy));
  auto* const impl = static_cast<LazyStorageImpl*>(storage.unsafeGetStorageImpl());
  at::Tensor lazy =
      MakeTensor(std::move(storage), result.scalar_type(), result.sizes(), result.strides(), result.storage_offset());
  CopyBits(result, lazy);
  if (is_new) {
    memory_.push_back({content.unsafeGetStorageImpl(), impl});
    impl->KeepEager(std::move(result), lazy);  // nobody else has the storage yet
  }
  return lazy;
}

bool RunShort(const Op& op, torch::jit::Stack* stack) {
  if (!CallAtOnce::IsFor(op)) return false;
  CallAtOnce call(op);
  const size_t first = stack->size() - op.args.size();
  c10::SmallVector<c10::IValue, 8> lazy;  // at first what is eager
  {
    const Locked lock(DeviceLock());
    for (size_t i = 0; i < op.args.size() && call.may_be_short(); ++i) lazy.push_back(call.Eager((*stack)[first + i]));
  }
  if (!call.is_short()) return false;
  std::swap_ranges(lazy.begin(), lazy.end(), stack->begin() + static_cast<ptrdiff_t>(first));
  RunOnAliases(op, stack, call.is_plain());
  for (size_t r = 0; r < op.return_alias.size(); ++r) {
    c10::IValue& result = (*stack)[first + r];
    result = op.return_alias[r] >= 0 ? lazy[op.return_alias[r]] : call.Lazy(result);
  }
  return true;
}

}  // namespace torch_lazy::lazy
