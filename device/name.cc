// SPDX-License-Identifier: Apache-2.0
// The device's name.
//
// Given as soon as the library is loaded: until then "lazy" means PyTorch's own, unrelated DeviceType::Lazy, and a
// c10::Device made from the string before keeps that meaning.
#include <c10/core/DeviceType.h>

namespace torch_lazy::device {
namespace {

[[maybe_unused]] const bool is_name_registered = (c10::register_privateuse1_backend("lazy"), true);

}  // namespace
}  // namespace torch_lazy::device
