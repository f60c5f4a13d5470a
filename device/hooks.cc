// SPDX-License-Identifier: Apache-2.0
// What PyTorch's device-independent code asks an accelerator.
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "device/eager_overrides/resize.h"
#include "device/fork.h"
#include "device/pinned.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/generator.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::device {
namespace {

c10::DeviceIndex Exchange(c10::DeviceIndex index) {
  const auto before = static_cast<c10::DeviceIndex>(lazy::CurrentDevice());
  lazy::SetCurrentDevice(index);
  return before;
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return index <= 0 || index < lazy::NumDevices(); }
  void init() const override { CheckFork(); }

  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(lazy::NumDevices()); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(lazy::CurrentDevice()); }
  void setCurrentDevice(c10::DeviceIndex index) const override { lazy::SetCurrentDevice(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override { return Exchange(index); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return Exchange(index); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return lazy::DefaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return lazy::NewGenerator(index); }

  at::Device getDeviceFromPtr(void* pointer) const override {
    const int index = lazy::IsOnHost() ? 0 : at::detail::getCUDAHooks().getDeviceFromPtr(pointer).index();
    return at::Device(at::kPrivateUse1, static_cast<c10::DeviceIndex>(index));
  }
  bool isPinnedPtr(const void* pointer) const override { return IsPinned(pointer); }
  at::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size_bytes) const override {
    ResizeStorage(storage.unsafeGetStorageImpl(), size_bytes);
  }
};

[[maybe_unused]] const bool are_hooks_registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

}  // namespace
}  // namespace torch_lazy::device
