// SPDX-License-Identifier: Apache-2.0
// Which of its forms scaled_dot_product_attention takes.
//
// On the CPU the one it would take there, for the same reasons: `_scaled_dot_product_flash_attention_for_cpu` where that
// kernel's conditions hold, else plain matrix products and softmax. On a GPU the memory-efficient form in the place of
// flash's and cuDNN's: for the flash form PyTorch asks the device's name, and calls the CPU's. Either way the operators that arrive
// are recorded, forward and backward, and give what eager gives.
#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_fused_sdp_choice_native.h>

#include "device/kernels/kernels.h"
#include "lazy/eager_device.h"
#include "lazy/geometry.h"

namespace torch_lazy::device {
namespace {

// A CUDA tensor like this one, without memory.
at::Tensor LikeOnCuda(const at::Tensor& tensor) {
  c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, lazy::EagerDevice()), nullptr, /*resizable=*/false);
  at::Tensor like = lazy::Alias(nothing, lazy::GeometryOf(tensor));
  if (tensor.requires_grad()) like.unsafeGetTensorImpl()->set_requires_grad(true);
  return like;
}

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

int64_t Choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
               double dropout, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  if (lazy::IsOnHost()) {
    return at::native::_fused_sdp_choice_cpp(query, key, value, mask, dropout, is_causal, scale, enable_gqa);
  }
  const std::optional<at::Tensor> like_mask = mask.has_value() && mask->defined() ? std::optional(LikeOnCuda(*mask)) : std::nullopt;
  const auto choose = [&] {
    return at::_fused_sdp_choice(LikeOnCuda(query), LikeOnCuda(key), LikeOnCuda(value), like_mask, dropout, is_causal, scale, enable_gqa);
  };
  const int64_t choice = choose();
  const bool is_other = choice == static_cast<int64_t>(sdp::SDPBackend::flash_attention) ||
                        choice == static_cast<int64_t>(sdp::SDPBackend::cudnn_attention);
  if (!is_other) return choice;
  const WithoutOthers without;  // what these take, the memory-efficient form need not
  return choose();
}

}  // namespace
}  // namespace torch_lazy::device

namespace at::native {

// Asked by scaled_dot_product_attention itself; the operator of the same name is what a program may ask.
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_lazy::device::Choose)

}  // namespace at::native

namespace torch_lazy::device {

void RegisterAttention(torch::Library& aten) {
  aten.impl("_fused_sdp_choice", TORCH_FN(Choose));
}

}  // namespace torch_lazy::device
