// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/convolutions.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "backends/registry.h"
#include "base/metrics.h"
#include "lazy/libraries/cudnn_convolution.h"
#include "lazy/libraries/onednn_convolution.h"

namespace torch_lazy::lazy {

bool PacksForCudnn() { return backends::Get().target() == codegen::Target::kCuda; }

bool CanPackConvolutions() { return PacksForCudnn() ? HasFusedConvolutions() : HasOneDnnConvolutions(); }

void Pack(const c10::Storage& weight_content, const c10::Storage& bias_content, PackedConvolution* convolution) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const PackedConvolution::Form& form = convolution->form;
  const at::Tensor weight = Alias(weight_content, form.weight);
  convolution->packed_weight = PacksForCudnn() ? weight : PackForOneDnn(form, weight);
  const Geometry per_channel{.dtype = form.weight.dtype, .sizes = {form.weight.sizes[0]}, .strides = {1}};
  convolution->bias = bias_content ? Alias(bias_content, per_channel) : at::Tensor();
}

c10::Storage RunConvolution(const PackedConvolution& convolution, const c10::Storage& x_content,
                            const c10::Storage& sum) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  base::Count(base::Counter::kLibraryCalls);
  return PacksForCudnn() ? RunCudnn(convolution, x_content, sum) : RunOneDnn(convolution, x_content, sum);
}

}  // namespace torch_lazy::lazy
