// SPDX-License-Identifier: Apache-2.0
// The allocator and the storages that PyTorch makes for the device by itself.
//
// Our own tensors do not pass here: their storages have no memory until a sync. These serve code that asks for raw
// memory of the device, and for a storage around it (`torch.UntypedStorage`, slices of storages, unpickling).
#include <unistd.h>

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "base/metrics.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/memory.h"
#include "lazy/eager/on_host.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::device {
namespace {

c10::Allocator* Eager() { return c10::GetAllocator(lazy::EagerDevice().type()); }

// Null on the host; decides which it is.
c10::DeviceAllocator* OfGpu() { return lazy::IsOnHost() ? nullptr : lazy::GpuAllocator(); }

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    const lazy::OnEagerDevice on;
    c10::DataPtr memory = Eager()->allocate(size_bytes);
    memory.unsafe_set_device(c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(lazy::CurrentDevice())));
    return memory;
  }
  c10::DeleterFnPtr raw_deleter() const override { return Eager()->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t pool) override {
    if (OfGpu() != nullptr) OfGpu()->emptyCache(pool);
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // all streams are one queue

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    if (OfGpu() != nullptr) return OfGpu()->getDeviceStats(device);
    constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingDeviceAllocator::DeviceStats stats;
    c10::CachingAllocator::Stat& bytes = stats.allocated_bytes[kAll];
    bytes.current = base::Get(base::Counter::kBytesLive);
    bytes.peak = std::max(bytes.current, base::Get(base::Counter::kBytesPeak));
    stats.reserved_bytes[kAll] = bytes;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    if (OfGpu() != nullptr) return OfGpu()->resetAccumulatedStats(device);
    TORCH_CHECK_NOT_IMPLEMENTED(false, "lazy: statistics are reset together, by torch.ops.torch_lazy.reset_metrics()");
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    if (OfGpu() != nullptr) return OfGpu()->resetPeakStats(device);
    resetAccumulatedStats(device);
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    if (OfGpu() != nullptr) return OfGpu()->getMemoryInfo(device);
    const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return {page_bytes * static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)),
            page_bytes * static_cast<size_t>(sysconf(_SC_PHYS_PAGES))};
  }
};

// Memory that comes along becomes the content; a storage without any gets it at its first write, like all of ours.
c10::intrusive_ptr<c10::StorageImpl> MakeStorageImpl(c10::StorageImpl::use_byte_size_t, c10::SymInt size_bytes,
                                                     c10::DataPtr memory, c10::Allocator* /*allocator*/,
                                                     bool /*resizable*/) {
  const size_t size = static_cast<size_t>(size_bytes.guard_int(__FILE__, __LINE__));
  const int index = memory.get() != nullptr ? memory.device().index() : lazy::CurrentDevice();
  auto storage = c10::make_intrusive<lazy::LazyStorageImpl>(size, index);
  if (memory.get() != nullptr) {
    const lazy::OnDevice on(index);
    memory.unsafe_set_device(lazy::EagerDevice());
    storage->content =
        c10::Storage(c10::Storage::use_byte_size_t(), size, std::move(memory), Eager(), /*resizable=*/true);
    storage->Expose();
  }
  return storage;
}

[[maybe_unused]] const bool is_allocator_registered = [] {
  c10::SetAllocator(c10::kPrivateUse1, new Allocator);
  c10::SetStorageImplCreate(c10::kPrivateUse1, &MakeStorageImpl);
  lazy::InstallPooledResults();
  return true;
}();

}  // namespace
}  // namespace torch_lazy::device
