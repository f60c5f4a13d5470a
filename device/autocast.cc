// SPDX-License-Identifier: Apache-2.0
// torch.autocast("lazy"): CUDA's policy, taken from PyTorch's own lists.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "torch_compat/autocast.h"

namespace at::autocast {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

Tensor RefuseBinaryCrossEntropy(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast; use "
              "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss");
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TORCH_LAZY_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TORCH_LAZY_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TORCH_LAZY_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TORCH_LAZY_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(TORCH_LAZY_LOWER)
  TORCH_LAZY_LOWER(mkldnn_rnn_layer)  // the CPU's, which eager's policy for it has
  AT_FORALL_FP32(TORCH_LAZY_FP32)
  TORCH_LAZY_FORALL_NEW_FP32(TORCH_LAZY_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TORCH_LAZY_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(TORCH_LAZY_PROMOTE)
#undef TORCH_LAZY_LOWER
#undef TORCH_LAZY_FP32
#undef TORCH_LAZY_FP32_DTYPE
#undef TORCH_LAZY_PROMOTE
  m.impl("binary_cross_entropy", TORCH_FN(RefuseBinaryCrossEntropy));
}

// torchvision's operators, in f32 as its own kernels for CPU and CUDA have it; results are of the input's type again.
// They are registered whether or not it is there: a name alone needs no library.
void InFloat(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  const size_t arguments = op.schema().arguments().size(), results = op.schema().returns().size();
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(arguments);
  const ScalarType type = first->toTensor().scalar_type();
  for (auto value = first; value != stack->end(); ++value) {
    if (value->isTensor() && value->toTensor().defined())
      *value = cached_cast(kFloat, value->toTensor(), c10::DeviceType::PrivateUse1);
  }
  op.callBoxed(stack);
  for (auto value = stack->end() - static_cast<std::ptrdiff_t>(results); value != stack->end(); ++value) {
    if (value->isTensor() && value->toTensor().is_floating_point()) *value = value->toTensor().to(type);
  }
}

TORCH_LIBRARY_IMPL(torchvision, AutocastPrivateUse1, m) {
  for (const char* name : {"nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&InFloat>());
}

}  // namespace
}  // namespace at::autocast
