// SPDX-License-Identifier: Apache-2.0
// Current device, streams and events.
//
// Everything on a device happens in program order, so all its streams are one queue under several names: on a GPU,
// CUDA's current stream there. An event is a point in that queue: recording one runs what is pending, after which it
// lies in the past for everybody; on a GPU it is one of CUDA's.
#include <atomic>
#include <chrono>
#include <limits>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device/fork.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::device {
namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  Clock::time_point time;
};

c10::StreamId& CurrentStream(c10::DeviceIndex device) {
  // Plain memory, since the engine asks for each node of a backward pass.
  static thread_local c10::StreamId streams[std::numeric_limits<c10::DeviceIndex>::max() + 1];
  return streams[device < 0 ? lazy::CurrentDevice() : device];
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(lazy::NumDevices()); }

  c10::Device getDevice() const override {
    return c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(lazy::CurrentDevice()));
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_privateuseone(), "lazy: expected a lazy device, got ", device);
    lazy::SetCurrentDevice(device.index());
  }
  // It was current before.
  void uncheckedSetDevice(c10::Device device) const noexcept override { lazy::SetCurrentDevice(device.index()); }

  c10::Stream getDefaultStream(c10::Device device) const override { return Stream(device, 0); }
  c10::Stream getStream(c10::Device device) const override { return Stream(device, CurrentStream(device.index())); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return Stream(stream.device(), std::exchange(CurrentStream(stream.device_index()), stream.id()));
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    static std::atomic<c10::StreamId> streams{0};
    return Stream(device, ++streams);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high_priority*/) const override {
    return getNewStream(device, /*priority=*/0);
  }
  bool queryStream(const c10::Stream& stream) const override {
    Run("stream query");
    return lazy::IsOnHost() || Cuda().queryStream(CudaStream(stream));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    Run("stream synchronize");
    if (!lazy::IsOnHost()) Cuda().synchronizeStream(CudaStream(stream));
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    Run("synchronize");
    const lazy::OnDevice on(device);
    lazy::WaitForEagerDevice();
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag flag) const override {
    Run("event record");
    if (!lazy::IsOnHost()) return Cuda().record(event, CudaStream(stream), stream.device_index(), flag);
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->time = Clock::now();
  }
  void destroyEvent(void* event, c10::DeviceIndex device) const noexcept override {
    if (!lazy::IsOnHost()) return Cuda().destroyEvent(event, device);
    delete static_cast<Event*>(event);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!lazy::IsOnHost()) Cuda().block(event, CudaStream(stream));  // the event may be another device's
  }
  bool queryEvent(void* event) const override { return lazy::IsOnHost() || Cuda().queryEvent(event); }
  void synchronizeEvent(void* event) const override {
    if (!lazy::IsOnHost()) Cuda().synchronizeEvent(event);
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex device) const override {
    if (!lazy::IsOnHost()) return Cuda().elapsedTime(begin, end, device);
    TORCH_CHECK(begin != nullptr && end != nullptr, "lazy: elapsed time between events that were not both recorded");
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(end)->time - static_cast<Event*>(begin)->time)
        .count();
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return c10::DeviceCapability(); }

 private:
  static const c10::impl::DeviceGuardImplInterface& Cuda() { return *c10::impl::getDeviceGuardImpl(c10::kCUDA); }
  // Where the device's work goes, whichever stream of ours it is on.
  static c10::Stream CudaStream(const c10::Stream& stream) {
    return Cuda().getStream(c10::Device(c10::kCUDA, stream.device_index()));
  }
  static c10::Stream Stream(c10::Device device, c10::StreamId id) {
    const int index = device.has_index() ? device.index() : lazy::CurrentDevice();
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index)), id);
  }
  static void Run(const char* reason) {
    CheckFork();
    lazy::SyncAll(reason);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace torch_lazy::device
