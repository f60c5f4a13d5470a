// SPDX-License-Identifier: Apache-2.0
#include "lazy/shapes/meta_shape.h"

#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lazy/shapes/elementwise_shape.h"
#include "lazy/shapes/meta_call.h"

namespace torch_lazy::lazy {
namespace {

// Operators whose Meta kernel calls one that is missing.
class Incomplete {
 public:
  static Incomplete& Instance() {
    static Incomplete* const incomplete = new Incomplete;
    return *incomplete;
  }
  bool Contains(const Op& op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ids_.contains(op.id);
  }
  void Add(const Op& op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids_.insert(op.id);
  }

 private:
  std::mutex mutex_;
  absl::flat_hash_set<uint32_t> ids_;
};

// Meta tensors in the place of lazy ones: one for each, so that a kernel sees which arguments are one tensor.
class MetaTwins {
 public:
  c10::IValue Of(const c10::IValue& value) {
    if (value.isTensor()) return Of(value.toTensor());
    if (value.isDevice() && value.toDevice().is_privateuseone()) return c10::Device(c10::kMeta);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const c10::IValue& item : value.toListRef()) list.push_back(Of(item.toTensor()));
      return list;
    }
    if (!value.isList() || value.toListRef().empty()) return value;
    c10::List<c10::IValue> list(value.toList().elementType());
    for (const c10::IValue& item : value.toListRef())
      list.push_back(item.isTensor() ? c10::IValue(Of(item.toTensor())) : item);
    return list;
  }

 private:
  at::Tensor Of(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
    at::Tensor& twin = twins_[tensor.unsafeGetTensorImpl()];
    if (!twin.defined()) twin = Make(*tensor.unsafeGetTensorImpl());
    return twin;
  }

  static at::Tensor Make(const c10::TensorImpl& impl) {
    c10::Storage storage(c10::Storage::use_byte_size_t(), impl.unsafe_storage().nbytes(),
                         c10::DataPtr(nullptr, c10::Device(c10::kMeta)), c10::GetAllocator(c10::kMeta), true);
    at::Tensor twin = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::Meta), impl.dtype());
    twin.unsafeGetTensorImpl()->set_sizes_and_strides(impl.sizes(), impl.strides(), impl.storage_offset());
    if (impl.is_wrapped_number()) twin.unsafeGetTensorImpl()->set_wrapped_number(true);
    return twin;
  }

  absl::flat_hash_map<const c10::TensorImpl*, at::Tensor> twins_;
};

std::shared_ptr<const CallShape> ShapeOfTwins(const Op& op, const CallDescription& call,
                                              const torch::jit::Stack& stack) {
  torch::jit::Stack meta;
  MetaTwins twin;
  meta.reserve(op.args.size());
  for (auto it = stack.end() - static_cast<ptrdiff_t>(op.args.size()); it != stack.end(); ++it)
    meta.push_back(twin.Of(*it));
  const torch::jit::Stack twins = meta;
  CallMeta(op.handle, &meta);
  auto shape = std::make_shared<CallShape>();
  for (size_t r = 0; r < op.return_alias.size(); ++r) {
    ResultShape result;
    result.ret = static_cast<int16_t>(r);
    shape->list_sizes.push_back(-1);
    if (op.return_alias[r] >= 0) {
      result.arg = static_cast<int16_t>(op.return_alias[r]);
      const at::Tensor written = meta[r].toTensor();
      const at::Tensor original = (stack.end() - static_cast<ptrdiff_t>(op.args.size()))[result.arg].toTensor();
      if (written.sizes() != original.sizes() || written.strides() != original.strides()) return nullptr;  // resized
    } else {
      if (!meta[r].isTensor() || !meta[r].toTensor().defined()) return nullptr;
      const at::Tensor& tensor = meta[r].toTensor();
      if (tensor.numel() == 0)
        return nullptr;  // Python's Meta kernels need not give nothing the strides that eager does
      for (const c10::IValue& twin : twins) {
        if (twin.isTensor() && twin.toTensor().defined() && twin.toTensor().is_alias_of(tensor)) return nullptr;
      }
      result.geometry = GeometryOf(tensor);
      result.size_bytes = SizeBytes(result.geometry);
      if (result.geometry.offset != 0) return nullptr;
    }
    shape->results.push_back(std::move(result));
  }
  CorrectStrides(op, call, shape.get());
  return shape;
}

}  // namespace

std::shared_ptr<const CallShape> MetaShape(const Op& op, const CallDescription& call, const torch::jit::Stack& stack) {
  if (Incomplete::Instance().Contains(op)) return nullptr;
  try {
    return ShapeOfTwins(op, call, stack);
  } catch (const c10::NotImplementedError&) {
    Incomplete::Instance().Add(op);
  } catch (const std::exception&) {
  }
  return nullptr;
}

}  // namespace torch_lazy::lazy
