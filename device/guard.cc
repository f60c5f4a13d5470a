// SPDX-License-Identifier: Apache-2.0
// Current device, streams and events.
//
// There is one device and everything on it happens in program order, so all streams are one queue under several names: on
// a GPU, CUDA's current stream. An event is a point in that queue: recording one runs what is pending, after which it lies
// in the past for everybody; on a GPU it is one of CUDA's.
#include <atomic>
#include <chrono>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device/fork.h"
#include "lazy/eager_device.h"
#include "lazy/storage.h"

namespace torch_lazy::device {
namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  Clock::time_point time;
};

c10::StreamId& CurrentStream() {
  static thread_local c10::StreamId stream = 0;
  return stream;
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Device getDevice() const override { return c10::Device(c10::kPrivateUse1, 0); }
  c10::Device exchangeDevice(c10::Device device) const override {
    setDevice(device);
    return getDevice();
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_privateuseone(), "lazy: expected a lazy device, got ", device);
    TORCH_CHECK(device.index() == 0 || device.index() == -1, "lazy: device index ", static_cast<int>(device.index()),
                " is out of range: there is 1 device");
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}

  c10::Stream getDefaultStream(c10::Device) const override { return Stream(0); }
  c10::Stream getStream(c10::Device) const override { return Stream(CurrentStream()); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return Stream(std::exchange(CurrentStream(), stream.id()));
  }
  c10::Stream getNewStream(c10::Device, int /*priority*/) const override {
    static std::atomic<c10::StreamId> streams{0};
    return Stream(++streams);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high_priority*/) const override {
    return getNewStream(device, /*priority=*/0);
  }
  bool queryStream(const c10::Stream&) const override {
    Run("stream query");
    return lazy::IsOnHost() || Cuda().queryStream(CudaStream());
  }
  void synchronizeStream(const c10::Stream&) const override {
    Run("stream synchronize");
    if (!lazy::IsOnHost()) Cuda().synchronizeStream(CudaStream());
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    Run("synchronize");
    lazy::WaitForEagerDevice();
  }

  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag flag) const override {
    Run("event record");
    if (!lazy::IsOnHost()) return Cuda().record(event, CudaStream(), lazy::EagerDevice().index(), flag);
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->time = Clock::now();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    if (!lazy::IsOnHost()) return Cuda().destroyEvent(event, lazy::EagerDevice().index());
    delete static_cast<Event*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override { return lazy::IsOnHost() || Cuda().queryEvent(event); }
  void synchronizeEvent(void* event) const override {
    if (!lazy::IsOnHost()) Cuda().synchronizeEvent(event);
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex) const override {
    if (!lazy::IsOnHost()) return Cuda().elapsedTime(begin, end, lazy::EagerDevice().index());
    TORCH_CHECK(begin != nullptr && end != nullptr, "lazy: elapsed time between events that were not both recorded");
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(end)->time - static_cast<Event*>(begin)->time).count();
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return c10::DeviceCapability(); }

 private:
  static const c10::impl::DeviceGuardImplInterface& Cuda() { return *c10::impl::getDeviceGuardImpl(c10::kCUDA); }
  static c10::Stream CudaStream() { return Cuda().getStream(lazy::EagerDevice()); }
  static c10::Stream Stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, 0), id);
  }
  static void Run(const char* reason) {
    CheckFork();
    lazy::SyncAll(reason);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace torch_lazy::device
