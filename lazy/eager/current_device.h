// SPDX-License-Identifier: Apache-2.0
// Which of several devices a call is for.
//
// lazy:1 stands on cuda:1; on the host all stand on the CPU. As with CUDA, each thread has a current device, which is
// that of calls without a tensor: a call with tensors makes theirs current while it is recorded, and a trace its own
// while it runs. So nothing else hands devices around. What a device has of its own (stream, memory, generator) is
// asked of the current one.
#pragma once

#include <atomic>
#include <optional>

#include <c10/core/DeviceGuard.h>

namespace torch_lazy::lazy {

namespace internal {
extern std::atomic<bool> uses_several_devices;
int CurrentOfSeveral();
}  // namespace internal

// False until a device other than the first becomes current somewhere: programs that have one ask no further.
inline bool UsesSeveralDevices() { return internal::uses_several_devices.load(std::memory_order_relaxed); }

// Of the calling thread; 0 at first.
inline int CurrentDevice() { return UsesSeveralDevices() ? internal::CurrentOfSeveral() : 0; }

// On a GPU, makes CUDA's the same. Negative: nothing. Throws if there are not so many.
void SetCurrentDevice(int index);

// How many there are. Asks CUDA, but opens none of its devices.
int NumDevices();

// Makes a device the current one for a scope.
class OnDevice {
 public:
  explicit OnDevice(int index) : before_(CurrentDevice()) {
    if (index >= 0 && index != before_) SetCurrentDevice(index);
  }
  ~OnDevice() {
    if (UsesSeveralDevices() && CurrentDevice() != before_) SetCurrentDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const int before_;
};

// Makes CUDA's current device that on which ours stands, whatever the program has made it.
class OnEagerDevice {
 public:
  OnEagerDevice();

 private:
  std::optional<c10::DeviceGuard> guard_;
};

}  // namespace torch_lazy::lazy
