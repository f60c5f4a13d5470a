// SPDX-License-Identifier: Apache-2.0
#include "bench/null_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace bench {
namespace {

using at::Tensor;
constexpr c10::DeviceType kNull = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

struct Allocator final : c10::Allocator {
  static void Free(void* data) { c10::GetCPUAllocator()->raw_deallocate(data); }
  c10::DataPtr allocate(size_t size) override {
    void* data = c10::GetCPUAllocator()->raw_allocate(size);
    return {data, data, &Free, c10::Device(kNull, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }
};

Allocator allocator;
REGISTER_ALLOCATOR(kNull, &allocator)

// Autograd's engine asks for streams, and records an event after the backward pass.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kNull; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return c10::Device(kNull, 0); }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, getDevice()); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream(getDevice()); }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
};

// The accelerator of this process: else autograd's engine asks CUDA for streams.
[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::register_privateuse1_backend("null");
  return true;
}();

Tensor Empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), &allocator, kKeys, type.value_or(at::kFloat),
                                   format);
}
Tensor EmptyStrided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> type,
                    std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), &allocator,
                                           kKeys, type.value_or(at::kFloat));
}
Tensor CopyFrom(const Tensor&, const Tensor& to, bool) { return to; }
at::Scalar Item(const Tensor&) { return 0.0; }
bool MayTakeOver(const Tensor&, const Tensor&) { return true; }  // for Module::to, which sets the data of parameters
Tensor& Resized(int64_t size, Tensor& out) {
  out.unsafeGetTensorImpl()->set_storage_keep_dtype(NewTensor({size}, out.scalar_type()).storage());
  out.unsafeGetTensorImpl()->set_sizes_contiguous({size});
  return out;
}
Tensor& Arange(const at::Scalar& begin, const at::Scalar& end, const at::Scalar& step, Tensor& out) {
  return Resized(static_cast<int64_t>((end.toDouble() - begin.toDouble()) / step.toDouble()), out);
}
Tensor& Permutation(c10::SymInt size, std::optional<at::Generator>, Tensor& out) {
  return Resized(size.expect_int(), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", Empty);
  m.impl("empty_strided", EmptyStrided);
  m.impl("arange.start_out", Arange);
  m.impl("randperm.generator_out", Permutation);
  m.impl("_copy_from", CopyFrom);
  m.impl("_local_scalar_dense", Item);
  m.impl("_has_compatible_shallow_copy_type", MayTakeOver);
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
}

}  // namespace

Tensor NewTensor(c10::IntArrayRef sizes, at::ScalarType type) {
  return at::detail::empty_generic(sizes, &allocator, kKeys, type, std::nullopt);
}

}  // namespace bench
