// SPDX-License-Identifier: Apache-2.0
#include "lazy/record/run_now.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "lazy/cuda/philox.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/composite_tensors.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/generator.h"
#include "lazy/eager/geometry.h"
#include "lazy/eager/memory.h"
#include "lazy/eager/on_host.h"
#include "lazy/host/lock.h"
#include "lazy/run/run_on_aliases.h"
#include "lazy/trace/replay_recorder.h"
#include "lazy/trace/storage.h"
#include "torch_compat/names.h"

namespace torch_lazy::lazy {
namespace {

// Most calls have few arguments, which are found soonest by looking at all of them.
template <typename Key, typename Value>
class Table {
 public:
  Value& operator[](Key key) {
    constexpr size_t kFew = 16;
    if (all_.size() <= kFew) {
      for (auto& [known, value] : all_) {
        if (known == key) return value;
      }
    } else if (places_.empty()) {
      for (size_t i = 0; i < all_.size(); ++i) places_[all_[i].first] = i;
    }
    if (all_.size() > kFew) {
      const auto [place, is_new] = places_.try_emplace(key, all_.size());
      if (!is_new) return all_[place->second].second;
    }
    return all_.emplace_back(key, Value()).second;
  }

 private:
  c10::SmallVector<std::pair<Key, Value>, 4> all_;
  absl::flat_hash_map<Key, size_t> places_;  // of many
};

// Other threads may write other parts of the storage meanwhile.
bool IsContentOf(const LazyStorageImpl& storage, const at::Tensor& alias) {
  const Locked lock(DeviceLock());
  return alias.storage().unsafeGetStorageImpl() == storage.content.unsafeGetStorageImpl();
}

// The arguments of one call replaced by eager tensors on the same memory, one alias per tensor and one alias storage
// per lazy storage, so that identity and aliasing among arguments survive; and the way back.
class AliasCall {
 public:
  AliasCall(const Op& op, torch::jit::Stack* stack, const char* reason) : op_(op), stack_(*stack), reason_(reason) {
    const size_t first = stack->size() - op.args.size();
    originals_.assign(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
    for (const bool written : {true, false}) {  // in this order, since a tensor's one alias is written if any use is
      for (size_t i = 0; i < originals_.size(); ++i) {
        if (op.args[i].written == written) (*stack)[first + i] = Convert(originals_[i], written);
      }
    }
  }

  // After the run: geometry of written arguments that were resized, or marked as conjugate. True if any was.
  bool TakeBackGeometry() {
    bool changed = false;
    for (const auto& [original, alias] : written_) {
      if (!IsDense(original)) {
        SetMembers(original, alias, [this](const at::Tensor& member) { return Wrap(member); });
        continue;
      }
      torch_compat::CopyNames(original, alias);
      LazyStorageImpl* storage = LazyStorageImpl::Of(original);
      TORCH_CHECK(storage == nullptr || IsContentOf(*storage, alias), op_.name,
                  ": replacing the storage of an output is not supported on device lazy");
      if (storage != nullptr && storage->nbytes() != alias.storage().nbytes()) {
        storage->set_nbytes(alias.storage().nbytes());
        changed = true;
      }
      if (original.sizes() == alias.sizes() && original.strides() == alias.strides() &&
          original.storage_offset() == alias.storage_offset() && original.is_conj() == alias.is_conj() &&
          original.is_neg() == alias.is_neg()) {
        continue;
      }
      c10::TensorImpl* impl = original.unsafeGetTensorImpl();
      impl->set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
      impl->_set_conj(alias.is_conj());
      impl->_set_neg(alias.is_neg());
      changed = true;
    }
    return changed;
  }

  const c10::IValue& original(int arg) const { return originals_[arg]; }

  // A lazy tensor for an eager result; `*fresh` is cleared if it is not a dense one with memory of its own.
  at::Tensor Wrap(const at::Tensor& result, bool* fresh) {
    if (!result.defined()) return result;
    if (result.device() != EagerDevice()) {  // a number for the host, beside results on a GPU
      *fresh = false;
      return result;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(!result.is_quantized(), op_.name,
                                ": quantized tensors are not supported on device lazy");
    if (!IsDense(result)) {
      *fresh = false;
      return MakeOfMembers(result, at::Device(at::kPrivateUse1, static_cast<c10::DeviceIndex>(CurrentDevice())),
                           [this](const at::Tensor& member) { return Wrap(member); });
    }
    c10::Storage& storage = storages_[result.storage().unsafeGetStorageImpl()];
    if (storage) {
      *fresh = false;
    } else {
      const bool is_ours_alone = result.storage().use_count() == 1 && IsAllocated(result.storage());
      storage = MakeStorage(result.storage(), /*exposed=*/!is_ours_alone);
    }
    at::Tensor tensor =
        MakeTensor(storage, result.scalar_type(), result.sizes(), result.strides(), result.storage_offset());
    torch_compat::CopyNames(tensor, result);
    if (result.is_conj()) tensor.unsafeGetTensorImpl()->_set_conj(true);
    if (result.is_neg()) tensor.unsafeGetTensorImpl()->_set_neg(true);
    if (result.unsafeGetTensorImpl()->is_wrapped_number()) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }

 private:
  at::Tensor Wrap(const at::Tensor& member) {
    bool fresh = true;
    return Wrap(member, &fresh);
  }

  c10::IValue Convert(const c10::IValue& value, bool written) {
    if (value.isTensor()) return Alias(value.toTensor(), written);
    if (value.isDevice() && value.toDevice().is_privateuseone()) return EagerDevice();
    if (value.isGenerator()) {
      // A call on the host's tensors comes here if its generator is the device's.
      TORCH_CHECK(!AllOnHost(), "Expected a 'cpu' device type for generator but found 'lazy'");
      return EagerGeneratorOf(value.toGenerator());
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& item : value.toListRef()) list.push_back(Alias(item.toTensor(), written));
      return list;
    }
    if (!value.isList()) return value;
    c10::List<c10::IValue> list(value.toList().elementType());
    for (const c10::IValue& item : value.toListRef()) list.push_back(item.isTensor() ? Convert(item, written) : item);
    return list;
  }

  at::Tensor Alias(const at::Tensor& tensor, bool written) {
    if (!tensor.defined()) return tensor;
    const bool is_host = !tensor.is_privateuseone();
    const bool may_be_elsewhere = is_host && ((!written && (tensor.dim() == 0 || op_.Has(kTakesHostTensors))) ||
                                              !op_.takes_tensors || AllOnHost());
    const bool is_here = !is_host && tensor.device().index() == CurrentDevice();
    TORCH_CHECK(is_here || may_be_elsewhere || op_.Has(kTakesNumberOfAnyDevice),
                "Expected all tensors to be on the same device, but found at least two devices, lazy:", CurrentDevice(),
                " and ", tensor.device(), "!");
    if (is_host) return tensor;
    at::Tensor& alias = aliases_[tensor.unsafeGetTensorImpl()];
    if (alias.defined()) return alias;
    alias = IsDense(tensor) ? DenseAlias(tensor, written) : AliasOfMembers(tensor, written);
    if (written) written_.emplace_back(tensor, alias);
    // Sparse products keep what their gradient needs only if somebody asks for one.
    if (tensor.requires_grad()) alias.unsafeGetTensorImpl()->set_requires_grad(true);
    return alias;
  }

  at::Tensor DenseAlias(const at::Tensor& tensor, bool written) {
    at::Tensor alias = SyncToAlias(tensor, reason_, written);
    torch_compat::CopyNames(alias, tensor);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
    storages_[alias.storage().unsafeGetStorageImpl()] = tensor.storage();
    return alias;
  }

  // Members may be tensors made for the moment, so they are not looked up by their identity.
  at::Tensor AliasOfMembers(const at::Tensor& tensor, bool written) {
    return MakeOfMembers(tensor, EagerDevice(), [&](const at::Tensor& member) {
      const at::Tensor alias = DenseAlias(member, written);
      if (written) written_.emplace_back(member, alias);
      return alias;
    });
  }

  bool AllOnHost() const {
    for (const c10::IValue& value : originals_) {
      if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_privateuseone()) return false;
      if (!value.isTensorList()) continue;
      for (const c10::IValue& item : value.toListRef()) {
        if (item.toTensor().defined() && item.toTensor().is_privateuseone()) return false;
      }
    }
    return true;
  }

  const Op& op_;
  torch::jit::Stack& stack_;
  const char* reason_;
  std::vector<c10::IValue> originals_;
  Table<c10::TensorImpl*, at::Tensor> aliases_;      // of the arguments
  Table<c10::StorageImpl*, c10::Storage> storages_;  // of each content, of arguments and results
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;
};

ResultShape ShapeOf(const at::Tensor& tensor, size_t ret, int item) {
  ResultShape shape;
  shape.ret = static_cast<int16_t>(ret);
  shape.item = item;
  shape.defined = tensor.defined() && IsDense(tensor);
  if (!shape.defined) return shape;
  shape.geometry = GeometryOf(tensor);
  shape.size_bytes = SizeBytes(shape.geometry);  // ATen's own storage may be larger, where it shrank the result
  return shape;
}

}  // namespace

std::shared_ptr<const CallShape> RunNow(const Op& op, torch::jit::Stack* stack, const char* reason, bool learn) {
  const DrawRecorder draw(op, *stack);
  if (CurrentReplayRecorder() != nullptr) BreakReplay(absl::StrCat("it does at once: ", op.name));
  AliasCall call(op, stack, reason);
  {
    std::unique_lock<std::mutex> lock;
    if (op.random && !IsOnHost()) lock = std::unique_lock<std::mutex>(DrawMutex());
    RunOnAliases(op, stack);
  }
  bool learnable = !call.TakeBackGeometry() && learn;
  const std::shared_ptr<CallShape> shape = learn ? std::make_shared<CallShape>() : nullptr;
  const size_t first = stack->size() - op.return_alias.size();
  for (size_t r = 0; r < op.return_alias.size(); ++r) {
    c10::IValue& value = (*stack)[first + r];
    int list_size = -1;
    if (op.return_alias[r] >= 0) {
      value = call.original(op.return_alias[r]);
      ResultShape same;
      same.ret = static_cast<int16_t>(r);
      same.arg = static_cast<int16_t>(op.return_alias[r]);
      if (learn) shape->results.push_back(same);
    } else if (value.isTensor()) {
      const at::Tensor result = call.Wrap(value.toTensor(), &learnable);
      if (learn) shape->results.push_back(ShapeOf(result, r, -1));
      value = result;
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& item : value.toListRef()) {
        list.push_back(call.Wrap(item.toTensor(), &learnable));
        if (learn) shape->results.push_back(ShapeOf(list.get(list.size() - 1), r, static_cast<int>(list.size()) - 1));
      }
      list_size = static_cast<int>(list.size());
      value = std::move(list);
    } else {
      learnable = false;
    }
    if (learn) shape->list_sizes.push_back(list_size);
  }
  return learnable ? shape : nullptr;
}

}  // namespace torch_lazy::lazy
