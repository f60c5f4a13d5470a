// SPDX-License-Identifier: Apache-2.0
// A device whose kernels return at once: the floor of what recording can cost.
//
// It has the calls of record_bench only. A call makes its result's tensor and storage, uninitialized, and nothing else.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace {

using at::Scalar;
using at::Tensor;
constexpr c10::DeviceType kNull = c10::DeviceType::PrivateUse1;

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

struct Guard final : c10::impl::NoOpDeviceGuardImpl<kNull> {};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

Tensor Like(const Tensor& self) {
  return at::detail::empty_generic(self.sizes(), &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   self.scalar_type(), std::nullopt);
}

Tensor EmptyStrided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> type,
                    std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                                           &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}
Tensor CopyFrom(const Tensor&, const Tensor& to, bool) { return to; }
Tensor Unary(const Tensor& self) { return Like(self); }
Tensor Binary(const Tensor& self, const Tensor&) { return Like(self); }
Tensor BinaryAlpha(const Tensor& self, const Tensor&, const Scalar&) { return Like(self); }
Tensor BinaryScalar(const Tensor& self, const Scalar&) { return Like(self); }
Tensor& BinaryAlphaInPlace(Tensor& self, const Tensor&, const Scalar&) { return self; }
Tensor& BinaryScalarInPlace(Tensor& self, const Scalar&) { return self; }
Tensor& BinaryInPlace(Tensor& self, const Tensor&) { return self; }
Tensor& TernaryInPlace(Tensor& self, const Tensor&, const Tensor&, const Scalar&) { return self; }
Tensor Addmm(const Tensor&, const Tensor& a, const Tensor&, const Scalar&, const Scalar&) { return Like(a); }
Tensor ZerosLike(const Tensor& self, std::optional<at::ScalarType>, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat>) {
  return Like(self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty_strided", EmptyStrided);
  m.impl("_copy_from", CopyFrom);
  m.impl("zeros_like", ZerosLike);
  m.impl("add.Tensor", BinaryAlpha);
  m.impl("sub.Tensor", BinaryAlpha);
  m.impl("mul.Tensor", Binary);
  m.impl("div.Tensor", Binary);
  m.impl("div.Scalar", BinaryScalar);
  m.impl("tanh", Unary);
  m.impl("relu", Unary);
  m.impl("sqrt", Unary);
  m.impl("addmm", Addmm);
  m.impl("add_.Tensor", BinaryAlphaInPlace);
  m.impl("mul_.Tensor", BinaryInPlace);
  m.impl("mul_.Scalar", BinaryScalarInPlace);
  m.impl("addcmul_", TernaryInPlace);
  m.impl("addcdiv_", TernaryInPlace);
}

}  // namespace
