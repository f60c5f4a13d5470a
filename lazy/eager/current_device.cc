// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/current_device.h"

#include <algorithm>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "absl/strings/str_cat.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::lazy {
namespace {

constexpr int kMostDevices = 64;  // call_settings.h has room for them

thread_local int current = 0;

const c10::impl::DeviceGuardImplInterface* Cuda() {
  return c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kCUDA)].load();
}

int NumGpus() {
  static const int number = Cuda() == nullptr ? 0 : Cuda()->deviceCount();
  return number;
}

c10::Device CurrentGpu() { return {c10::kCUDA, static_cast<c10::DeviceIndex>(CurrentDevice())}; }

bool MayBeOnGpu() {
  const base::BackendChoice choice = base::Backend();
  return choice == base::BackendChoice::kCuda || choice == base::BackendChoice::kAuto;
}

}  // namespace

namespace internal {

constinit std::atomic<bool> uses_several_devices{false};

int CurrentOfSeveral() { return current; }

}  // namespace internal

int NumDevices() {
  const int64_t number = MayBeOnGpu() && NumGpus() > 0 ? NumGpus() : base::Number(base::Option::kDevices);
  return static_cast<int>(std::clamp<int64_t>(number, 1, kMostDevices));
}

void SetCurrentDevice(int index) {
  if (index < 0 || index == CurrentDevice()) return;
  if (index > 0) {
    const int number = NumDevices();
    TORCH_CHECK(index < number, "lazy: device index ", index, " is out of range: ",
                number == 1 ? "there is 1 device" : absl::StrCat("there are ", number, " devices"));
    const absl::Status opened = IsOnHost() ? absl::OkStatus() : backends::Get().Open(index);
    TORCH_CHECK(opened.ok(), "lazy: ", std::string(opened.message()));
    internal::uses_several_devices = true;
  }
  current = index;
  if (IsGpuInUse()) Cuda()->uncheckedSetDevice(CurrentGpu());
}

OnEagerDevice::OnEagerDevice() {
  if (IsGpuInUse() && NumGpus() > 1) guard_.emplace(CurrentGpu());
}

}  // namespace torch_lazy::lazy
