// SPDX-License-Identifier: Apache-2.0
// Which of its forms scaled_dot_product_attention takes.
//
// On the CPU the one it would take there, for the same reasons: `_scaled_dot_product_flash_attention_for_cpu` where
// that kernel's conditions hold, else plain matrix products and softmax. On a GPU the form that CUDA would take.
// Flash's and cuDNN's arrive as `_scaled_dot_product_fused_attention_overrideable`, since for the flash form PyTorch
// asks the device's name, and calls the CPU's. Either way what arrives is recorded, forward and backward
// (fused_attention.cc), and gives what eager gives.
#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_fused_sdp_choice_native.h>

#include "device/eager_overrides/fused_attention.h"
#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/like_on_cuda.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::device {
namespace {

// While one lives, CUDA chooses the memory-efficient form or none.
class WithoutOthers {
 public:
  WithoutOthers() { Set(false, false); }
  ~WithoutOthers() { Set(flash_, cudnn_); }
  WithoutOthers(const WithoutOthers&) = delete;
  WithoutOthers& operator=(const WithoutOthers&) = delete;

 private:
  static void Set(bool flash, bool cudnn) {
    at::globalContext().setSDPUseFlash(flash);
    at::globalContext().setSDPUseCuDNN(cudnn);
  }
  const bool flash_ = at::globalContext().userEnabledFlashSDP(), cudnn_ = at::globalContext().userEnabledCuDNNSDP();
};

int64_t ChoiceOfCuda(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& mask, double dropout, bool is_causal, std::optional<double> scale,
                     bool enable_gqa) {
  const std::optional<at::Tensor> like_mask =
      mask.has_value() && mask->defined() ? std::optional(LikeOnCuda(*mask)) : std::nullopt;
  // Not by way of Python, which would not have such tensors among fake ones.
  return at::_ops::_fused_sdp_choice::redispatch(c10::DispatchKeySet(c10::DispatchKey::CUDA), LikeOnCuda(query),
                                                 LikeOnCuda(key), LikeOnCuda(value), like_mask, dropout, is_causal,
                                                 scale, enable_gqa);
}

// Flash's form of rows that PyTorch pads, masks as cuDNN takes them, and dropout of both are left to the
// memory-efficient form. Fake tensors may have sizes that are no numbers yet: asked for as numbers they would be some,
// and the graph good for these alone.
bool IsFused(const at::Tensor& query, const at::Tensor& value, const std::optional<at::Tensor>& mask, double dropout) {
  if (dropout != 0 || (mask.has_value() && mask->defined())) return false;
  return query.sym_size(-1) % 8 == 0 && value.sym_size(-1) == query.sym_size(-1);
}

int64_t Choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double dropout, bool is_causal, std::optional<double> scale,
               bool enable_gqa) {
  if (lazy::IsOnHost()) {
    return at::native::_fused_sdp_choice_cpp(query, key, value, mask, dropout, is_causal, scale, enable_gqa);
  }
  const int64_t choice = ChoiceOfCuda(query, key, value, mask, dropout, is_causal, scale, enable_gqa);
  const bool is_other = choice == static_cast<int64_t>(sdp::SDPBackend::flash_attention) ||
                        choice == static_cast<int64_t>(sdp::SDPBackend::cudnn_attention);
  if (!is_other) return choice;
  if (IsFused(query, value, mask, dropout)) return static_cast<int64_t>(sdp::SDPBackend::overrideable);
  const WithoutOthers without;  // what these take, the memory-efficient form need not
  return ChoiceOfCuda(query, key, value, mask, dropout, is_causal, scale, enable_gqa);
}

}  // namespace
}  // namespace torch_lazy::device

namespace at::native {

// Asked by scaled_dot_product_attention itself; the operator of the same name is what a program may ask.
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_lazy::device::Choose)

}  // namespace at::native

namespace torch_lazy::device {

void RegisterAttention(torch::Library& aten) { aten.impl("_fused_sdp_choice", TORCH_FN(Choose)); }

bool TakesCudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool is_causal,
                std::optional<double> scale) {
  return ChoiceOfCuda(query, key, value, /*mask=*/std::nullopt, /*dropout=*/0, is_causal, scale, /*enable_gqa=*/true) ==
         static_cast<int64_t>(sdp::SDPBackend::cudnn_attention);
}

}  // namespace torch_lazy::device
