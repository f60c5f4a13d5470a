// SPDX-License-Identifier: Apache-2.0
// What PyTorch's device-independent code asks an accelerator.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "device/fork.h"
#include "device/kernels/resize.h"
#include "device/pinned.h"
#include "lazy/generator.h"

namespace torch_lazy::device {
namespace {

void CheckIndex(c10::DeviceIndex index) {
  TORCH_CHECK(index == 0 || index == -1, "lazy: device index ", static_cast<int>(index), " is out of range: there is 1 device");
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return index == 0 || index == -1; }
  void init() const override { CheckFork(); }

  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex index) const override { CheckIndex(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override { return CheckIndex(index), 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return CheckIndex(index), 0; }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    CheckIndex(index);
    return lazy::DefaultGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    CheckIndex(index);
    return lazy::NewGenerator();
  }

  at::Device getDeviceFromPtr(void*) const override { return at::Device(at::kPrivateUse1, 0); }
  bool isPinnedPtr(const void* pointer) const override { return IsPinned(pointer); }
  at::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size_bytes) const override {
    ResizeStorage(storage.unsafeGetStorageImpl(), size_bytes);
  }
};

[[maybe_unused]] const bool registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

}  // namespace
}  // namespace torch_lazy::device
