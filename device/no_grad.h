// SPDX-License-Identifier: Apache-2.0
// Calls that autograd has nothing to do with: optimizers, backward passes, inference, and all whose arguments require
// no gradient.
//
// An operator's autograd kernel hands on twice, to the one that counts versions and to the device's, though nothing is
// to be differentiated. These calls are recorded in autograd's place: a fifth less for the host in Adam from C++. All
// others go through autograd's kernel, which is found at AutogradOther: PyTorch registers one for all devices.
#pragma once

#include <optional>

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>

namespace torch_lazy::device {

// True if the device's own kernel comes next: no mode of Python's, no functionalization, no conjugate bit in between.
// `keys`: the call's, at the autograd kernel.
inline bool MayPassAutograd(c10::DispatchKeySet keys) {
  const c10::DispatchKeySet below = keys & c10::after_ADInplaceOrView_keyset;
  return below == c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) ||  // as a rule
         below.highestPriorityTypeId() == c10::DispatchKey::PrivateUse1;
}

// The keys with which a call goes on to autograd's kernel: none of those above, such as that of Python's dispatcher,
// which would come here again.
inline c10::DispatchKeySet ThroughAutograd(c10::DispatchKeySet keys) {
  return (keys & c10::after_autograd_keyset).add(c10::DispatchKey::AutogradOther);
}

// True if autograd has to see the argument: one that requires a gradient, where gradients are recorded, or has a
// tangent of forward mode; a tensor of inference mode, which may not be written, or an undefined one, which it refuses.
inline bool NeedsAutograd(const at::Tensor& tensor) {
  if (!tensor.defined()) return true;
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.is_inference()) return true;
  if (impl.autograd_meta() == nullptr) return false;
  return (c10::GradMode::is_enabled() && impl.requires_grad()) || impl._fw_grad(/*level=*/0, tensor).defined();
}
inline bool NeedsAutograd(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() && NeedsAutograd(*tensor);
}
inline bool NeedsAutograd(const c10::List<std::optional<at::Tensor>>& list) {
  for (const std::optional<at::Tensor>& tensor : list) {
    if (NeedsAutograd(tensor)) return true;
  }
  return false;
}
inline bool NeedsAutograd(at::TensorList list) {
  for (const at::Tensor& tensor : list) {
    if (NeedsAutograd(tensor)) return true;
  }
  return false;
}
inline bool NeedsAutograd(const at::ITensorListRef& list) {
  for (const at::Tensor& tensor : list) {
    if (NeedsAutograd(tensor)) return true;
  }
  return false;
}
template <typename T>
bool NeedsAutograd(const T&) {
  return false;
}

}  // namespace torch_lazy::device
