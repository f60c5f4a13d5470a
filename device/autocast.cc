// SPDX-License-Identifier: Apache-2.0
// torch.autocast("lazy"): CUDA's policy, taken from PyTorch's own lists.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

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
  AT_FORALL_FP32_SET_OPT_DTYPE(TORCH_LAZY_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(TORCH_LAZY_PROMOTE)
#undef TORCH_LAZY_LOWER
#undef TORCH_LAZY_FP32
#undef TORCH_LAZY_FP32_DTYPE
#undef TORCH_LAZY_PROMOTE
  m.impl("binary_cross_entropy", TORCH_FN(RefuseBinaryCrossEntropy));
}

}  // namespace
}  // namespace at::autocast
