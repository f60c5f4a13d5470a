// SPDX-License-Identifier: Apache-2.0
// Which of its forms scaled_dot_product_attention takes.
//
// The one it would take on the CPU, for the same reasons: `_scaled_dot_product_flash_attention_for_cpu` where that
// kernel's conditions hold, else plain matrix products and softmax. Either way the operators that arrive are recorded,
// forward and backward, and give what eager gives.
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>

#include "device/kernels/kernels.h"

namespace at::native {

// Asked by scaled_dot_product_attention itself; the operator of the same name is what a program may ask.
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &_fused_sdp_choice_cpp)

}  // namespace at::native

namespace torch_lazy::device {

void RegisterAttention(torch::Library& aten) {
  aten.impl("_fused_sdp_choice", TORCH_FN(at::native::_fused_sdp_choice_cpp));
}

}  // namespace torch_lazy::device
