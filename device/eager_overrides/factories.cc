// SPDX-License-Identifier: Apache-2.0
// Tensors out of nothing: sizes and strides, and a storage that has no memory until something is written to it.
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/zeros.h>

#include "device/eager_overrides/kernels.h"
#include "device/fork.h"
#include "lazy/eager/current_device.h"
#include "lazy/ops/op.h"
#include "lazy/record/record.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/unwritten.h"

namespace torch_lazy::device {
namespace {

using OptionalLayout = std::optional<c10::Layout>;
using OptionalDType = std::optional<c10::ScalarType>;
using OptionalDevice = std::optional<c10::Device>;

int IndexOf(OptionalDevice device) { return device.has_value() ? device->index() : -1; }

void CheckOptions(OptionalLayout layout, std::optional<bool> pin_memory) {
  CheckFork();
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(c10::kStrided) == c10::kStrided, "lazy: tensors of layout ", *layout,
                              " are not supported");
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

// torch.use_deterministic_algorithms() asks for memory that is the same every time. Nearly all of it is overwritten
// unread, so the storage is filled when its content is first needed, if ever.
c10::Storage MakeUnwritten(size_t size_bytes, c10::ScalarType dtype) {
  return lazy::MakeStorage(size_bytes, lazy::FillsUnwritten() ? dtype : c10::ScalarType::Undefined);
}

at::Tensor Empty(c10::IntArrayRef sizes, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                 std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> memory_format) {
  CheckOptions(layout, pin_memory);
  const lazy::OnDevice on(IndexOf(device));
  at::detail::check_size_nonnegative(sizes);
  const c10::ScalarType type = c10::dtype_or_default(dtype);
  const size_t size_bytes = at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(type));
  c10::SmallVector<int64_t, 6> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  at::Tensor tensor = lazy::MakeTensor(MakeUnwritten(size_bytes, type), type, sizes, strides);
  if (memory_format.has_value() && *memory_format != c10::MemoryFormat::Contiguous) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*memory_format);
  }
  return tensor;
}

at::Tensor EmptyStrided(c10::IntArrayRef sizes, c10::IntArrayRef strides, OptionalDType dtype, OptionalLayout layout,
                        OptionalDevice device, std::optional<bool> pin_memory) {
  CheckOptions(layout, pin_memory);
  const lazy::OnDevice on(IndexOf(device));
  at::detail::check_size_nonnegative(sizes);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  const c10::ScalarType type = c10::dtype_or_default(dtype);
  const size_t size_bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type));
  return lazy::MakeTensor(MakeUnwritten(size_bytes, type), type, sizes, strides);
}

// A tensor of zeros that are not stored is an optimisation of autograd's; stored ones mean the same.
at::Tensor EfficientZeroTensor(c10::IntArrayRef sizes, OptionalDType dtype, OptionalLayout layout,
                               OptionalDevice device, std::optional<bool> pin_memory) {
  return at::zeros(sizes, dtype, layout, device, pin_memory);
}

// Recorded whole: taken apart by PyTorch, it would write into an empty tensor and resize it, which is never recorded.
void RecordFactory(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const auto layout = stack->end() - 3;  // then device and pin_memory, as in every such schema
  CheckOptions(layout[0].toOptional<c10::Layout>(), layout[2].toOptional<bool>());
  const lazy::OnDevice on(IndexOf(layout[1].toOptional<c10::Device>()));
  lazy::Call(lazy::OpOf(handle), stack);
}

}  // namespace

void RegisterFactories(torch::Library& aten) {
  aten.impl("empty.memory_format", TORCH_FN(Empty));
  aten.impl("empty_strided", TORCH_FN(EmptyStrided));
  aten.impl("_efficientzerotensor", TORCH_FN(EfficientZeroTensor));
  for (const char* name : {"eye", "eye.m", "linspace"}) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&RecordFactory>());
  }
}

}  // namespace torch_lazy::device
