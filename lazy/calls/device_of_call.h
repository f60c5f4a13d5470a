// SPDX-License-Identifier: Apache-2.0
// The device that a call is for: that of its first tensor.
#pragma once

#include <optional>

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "lazy/eager/current_device.h"

namespace torch_lazy::lazy {

// -1: the argument says nothing.
inline int DeviceOf(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_privateuseone() ? tensor.device().index() : -1;
}
inline int DeviceOf(const std::optional<at::Tensor>& tensor) { return tensor ? DeviceOf(*tensor) : -1; }
inline int DeviceOf(const c10::IValue& value);
template <typename Tensors>
int DeviceOfFirst(const Tensors& list) {
  for (const auto& tensor : list) {
    if (const int index = DeviceOf(tensor); index >= 0) return index;
  }
  return -1;
}
inline int DeviceOf(at::TensorList list) { return DeviceOfFirst(list); }
inline int DeviceOf(const at::ITensorListRef& list) { return DeviceOfFirst(list); }
inline int DeviceOf(const c10::List<std::optional<at::Tensor>>& list) { return DeviceOfFirst(list.vec()); }
inline int DeviceOf(const c10::IValue& value) {
  if (value.isTensor()) return DeviceOf(value.toTensor());
  if (!value.isList()) return -1;
  for (const c10::IValue& item : value.toListRef()) {
    if (!item.isTensor() && !item.isNone()) return -1;
    if (const int index = DeviceOf(item); index >= 0) return index;
  }
  return -1;
}
template <typename T>
int DeviceOf(const T&) {
  return -1;
}

// -1: none of them says anything, or there is but one device in use.
template <typename... Args>
int DeviceOfCall(const Args&... args) {
  int index = -1;
  if (UsesSeveralDevices()) static_cast<void>((... || ((index = DeviceOf(args)) >= 0)));
  return index;
}

// The same of arguments on a stack.
inline int DeviceOfCall(c10::ArrayRef<c10::IValue> args) { return UsesSeveralDevices() ? DeviceOfFirst(args) : -1; }

}  // namespace torch_lazy::lazy
