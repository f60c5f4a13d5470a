// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/at_work.h"
#include "base/check.h"
#include "base/faults.h"
#include "base/metrics.h"
#include "base/status.h"

namespace torch_lazy::backends {

// An image of all captured launches, on the host and on the device.
class CudaRecord final : public LaunchRecord {
 public:
  // `device`: memory for the image, which becomes the record's.
  CudaRecord(CudaBackend* backend, size_t size_bytes, void* device)
      : backend_(*backend), image_(size_bytes / sizeof(double)), device_(static_cast<char*>(device)) {}
  ~CudaRecord() override { backend_.host_.free(device_, image_.size() * sizeof(double)); }

  UploadRing::Place Place(const BlockLaunches& launches, absl::Span<const BoundInstance> instances) {
    char* const host = reinterpret_cast<char*>(image_.data()) + used_bytes_;
    LAZY_CHECK(used_bytes_ + launches.size_bytes() <= image_.size() * sizeof(double),
               "more arguments are captured than were announced");
    const UploadRing::Place place{host, reinterpret_cast<uint64_t>(device_ + used_bytes_)};
    launches.Write(place.host, place.device);
    const std::vector<size_t> places = launches.ScalarPlaces(instances);
    for (size_t k = 0; k < instances.size(); ++k) {
      for (size_t s = 0; s < instances[k].scalars.size(); ++s)
        scalars_.push_back((used_bytes_ + places[k]) / sizeof(double) + s);
    }
    used_bytes_ += launches.size_bytes();
    return place;
  }

  absl::Status Update(absl::Span<const double> scalars) override {
    LAZY_CHECK(scalars.size() == scalars_.size(), scalars.size(), " numbers for ", scalars_.size());
    bool changed = !uploaded_;
    for (size_t k = 0; k < scalars.size(); ++k) {
      changed |= std::bit_cast<int64_t>(image_[scalars_[k]]) != std::bit_cast<int64_t>(scalars[k]);
      image_[scalars_[k]] = scalars[k];
    }
    if (!changed || used_bytes_ == 0) return absl::OkStatus();
    uploaded_ = false;
    CudaBackend::OfDevice& device = backend_.ThisDevice();
    const cuda::CurrentContext current(backend_.driver_, device.context);
    LAZY_RETURN_IF_ERROR(current.status());
    const auto stream = static_cast<cuda::Stream>(backend_.host_.stream());
    absl::MutexLock lock(&device.mutex);
    LAZY_ASSIGN_OR_RETURN(const UploadRing::Place place, device.ring.Take(used_bytes_, stream));
    std::memcpy(place.host, image_.data(), used_bytes_);
    LAZY_RETURN_IF_CUDA_ERROR(backend_.driver_,
                              MemcpyHtoDAsync(reinterpret_cast<uint64_t>(device_), place.host, used_bytes_, stream),
                              "cuMemcpyHtoDAsync of ", used_bytes_, " bytes of a graph's arguments");
    uploaded_ = true;
    return absl::OkStatus();
  }

  static thread_local CudaRecord* current;  // the thread's, from BeginRecord to EndRecord

 private:
  CudaBackend& backend_;
  std::vector<double> image_;
  char* const device_;
  size_t used_bytes_ = 0;
  std::vector<size_t> scalars_;  // where they are in the image
  bool uploaded_ = false;
};

thread_local CudaRecord* CudaRecord::current = nullptr;

namespace {

struct Description {
  cuda::Device device = 0;
  std::string arch;
  Multiprocessors multiprocessors;
  bool can_overlap = false;
};

absl::StatusOr<Description> DescriptionOf(const cuda::Driver& driver, int index) {
  Description found;
  LAZY_RETURN_IF_ERROR(
      StatusOf(driver, driver.DeviceGet(&found.device, index), absl::StrCat("cuDeviceGet of ", index)));
  int major = 0, minor = 0;
  const std::pair<int, int*> attributes[] = {{cuda::kCapabilityMajor, &major},
                                             {cuda::kCapabilityMinor, &minor},
                                             {cuda::kMultiprocessors, &found.multiprocessors.count},
                                             {cuda::kThreadsOfMultiprocessor, &found.multiprocessors.threads_of_each}};
  for (const auto& [attribute, value] : attributes) {
    LAZY_RETURN_IF_ERROR(
        StatusOf(driver, driver.DeviceGetAttribute(value, attribute, found.device), "cuDeviceGetAttribute"));
  }
  found.arch = absl::StrCat("sm_", major, minor);
  found.can_overlap = major >= 9;
  return found;
}

// An error of what is loaded. Others, as after a kernel that has gone astray, no other code would
// mend.
bool IsOfImage(cuda::Result result) {
  constexpr cuda::Result kOfImage[] = {
      200,  // CUDA_ERROR_INVALID_IMAGE
      209,  // CUDA_ERROR_NO_BINARY_FOR_GPU
      300,  // CUDA_ERROR_INVALID_SOURCE
      302,  // CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
      303,  // CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
      500,  // CUDA_ERROR_NOT_FOUND
      701,  // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
  };
  return std::find(std::begin(kOfImage), std::end(kOfImage), result) != std::end(kOfImage);
}

}  // namespace

absl::StatusOr<CudaBackend*> CudaBackend::Make(const CudaHost& host) {
  base::WatchForExit();  // before what CUDA has registered by then
  LAZY_ASSIGN_OR_RETURN(const cuda::Driver* const driver, cuda::FindDriver());
  return Make(*driver, host);
}

absl::StatusOr<CudaBackend*> CudaBackend::Make(const cuda::Driver& driver, const CudaHost& host) {
  LAZY_ASSIGN_OR_RETURN(const Description first, DescriptionOf(driver, 0));
  auto backend = absl::WrapUnique(new CudaBackend(driver, host, first.arch, first.multiprocessors, first.can_overlap));
  LAZY_RETURN_IF_ERROR(backend->Open(0));
  return backend.release();
}

CudaBackend::CudaBackend(const cuda::Driver& driver, const CudaHost& host, std::string arch,
                         Multiprocessors multiprocessors, bool can_overlap)
    : driver_(driver),
      host_(host),
      arch_(std::move(arch)),
      multiprocessors_(multiprocessors),
      can_overlap_(can_overlap),
      kernels_(arch_, [this](const std::string& cubin, absl::Span<BlockKernel* const> kernels) {
        return Load(cubin, kernels);
      }) {}

absl::Status CudaBackend::Open(int device) {
  if (device < 0 || static_cast<size_t>(device) >= kMostDevices)
    return absl::OutOfRangeError(absl::StrCat("there is no CUDA device ", device));
  std::atomic<OfDevice*>& open = devices_[device];
  if (open.load(std::memory_order_acquire) != nullptr) return absl::OkStatus();
  absl::MutexLock lock(&open_mutex_);
  if (open.load(std::memory_order_relaxed) != nullptr) return absl::OkStatus();
  LAZY_ASSIGN_OR_RETURN(const Description found, DescriptionOf(driver_, device));
  if (found.arch != arch_) {
    return absl::UnavailableError(absl::StrCat("CUDA device ", device, " is ", found.arch, ", and the first ", arch_,
                                               ": kernels are compiled for one kind; CUDA_VISIBLE_DEVICES chooses"));
  }
  cuda::Context context = nullptr;
  LAZY_RETURN_IF_ERROR(
      StatusOf(driver_, driver_.DevicePrimaryCtxRetain(&context, found.device), "cuDevicePrimaryCtxRetain"));
  open.store(new OfDevice(driver_, host_, context), std::memory_order_release);
  return absl::OkStatus();
}

// PyTorch's libraries warn where a thread has no context yet.
absl::Status CudaBackend::Enter() {
  LAZY_RETURN_IF_CUDA_ERROR(driver_, CtxSetCurrent(ThisDevice().context), "cuCtxSetCurrent");
  return absl::OkStatus();
}

// A library's kernels are all devices'. One that is damaged shows when a device loads it, and so
// does one whose blocks need more registers than there are, which would be refused at its launch.
absl::Status CudaBackend::Load(const std::string& cubin, absl::Span<BlockKernel* const> kernels) const {
  const cuda::CurrentContext current(driver_, devices_[0].load()->context);
  LAZY_RETURN_IF_ERROR(current.status());
  cuda::Library library = nullptr;  // stays: its kernels may be launched at any time
  const auto check = [this](cuda::Result result, absl::string_view call, const std::string& name) {
    const absl::Status status = StatusOf(driver_, result, absl::StrCat(call, " of ", name));
    return IsOfImage(result) ? absl::InvalidArgumentError(status.message()) : status;
  };
  const std::string& first = kernels[0]->name;
  LAZY_RETURN_IF_ERROR(check(driver_.LibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                             "cuLibraryLoadData", first));
  const auto find = [&](const BlockKernel& kernel, absl::string_view ending, void** entry) {
    const std::string name = absl::StrCat(kernel.name, ending);
    cuda::Kernel found = nullptr;
    LAZY_RETURN_IF_ERROR(check(driver_.LibraryGetKernel(&found, library, name.c_str()), "cuLibraryGetKernel", name));
    *entry = found;
    cuda::Function function = nullptr;
    LAZY_RETURN_IF_ERROR(check(driver_.KernelGetFunction(&function, found), "cuKernelGetFunction", name));
    int threads = 0;
    LAZY_RETURN_IF_ERROR(
        check(driver_.FuncGetAttribute(&threads, cuda::kMostThreadsOfBlock, function), "cuFuncGetAttribute", name));
    if (kernel.threads <= threads) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": blocks of ", kernel.threads, " threads, and its registers suffice for ", threads));
  };
  for (BlockKernel* const kernel : kernels) {
    if (kernel->entries.one) LAZY_RETURN_IF_ERROR(find(*kernel, "", &kernel->one));
    if (kernel->entries.many) LAZY_RETURN_IF_ERROR(find(*kernel, "_many", &kernel->many));
    if (kernel->entries.few) LAZY_RETURN_IF_ERROR(find(*kernel, "_few", &kernel->few));
    if (kernel->exact_rows.extent >= 0) LAZY_RETURN_IF_ERROR(find(*kernel, "_exact", &kernel->exact));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LaunchRecord>> CudaBackend::BeginRecord(size_t size_bytes) {
  LAZY_ASSIGN_OR_RETURN(void* const device, host_.allocate(std::max<size_t>(size_bytes, 8)));
  auto record = std::make_unique<CudaRecord>(this, size_bytes, device);
  CudaRecord::current = record.get();
  return record;
}

void CudaBackend::EndRecord() { CudaRecord::current = nullptr; }

size_t CudaBackend::LaunchBytes(absl::Span<const BoundInstance> instances) const {
  return BlockLaunches(instances).size_bytes();
}

absl::Status CudaBackend::Launch(absl::Span<const BoundInstance> instances) {
  const BlockLaunches launches(instances);
  if (launches.launches().empty()) return absl::OkStatus();
  OfDevice& device = ThisDevice();
  const cuda::CurrentContext current(driver_, device.context);
  LAZY_RETURN_IF_ERROR(current.status());
  const auto stream = static_cast<cuda::Stream>(host_.stream());
  if (CudaRecord::current != nullptr) {
    return SendAll(launches, instances[0].follows_launch, CudaRecord::current->Place(launches, instances), stream);
  }
  absl::MutexLock lock(&device.mutex);
  LAZY_ASSIGN_OR_RETURN(const UploadRing::Place image, Write(launches, &device, stream));
  return SendAll(launches, instances[0].follows_launch, image, stream);
}

absl::StatusOr<UploadRing::Place> CudaBackend::Write(const BlockLaunches& launches, OfDevice* device,
                                                     cuda::Stream stream) const {
  const size_t device_bytes = launches.device_bytes();
  const BlockKernel* const first = launches.launches()[0].kernel;
  if (!launches.has_tables()) {  // what the device reads are numbers, at the image's start
    device->arguments.resize(std::max(device->arguments.size(), launches.size_bytes() / sizeof(int64_t)));
    char* const host = reinterpret_cast<char*>(device->arguments.data());
    launches.Write(host, 0);
    if (device_bytes == 0) return UploadRing::Place{host, 0};
    const absl::Span<const double> scalars(reinterpret_cast<double*>(host), device_bytes / sizeof(double));
    LAZY_ASSIGN_OR_RETURN(const uint64_t kept, device->kept.Find(first, scalars));
    if (kept != 0) {
      launches.Write(host, kept);
      return UploadRing::Place{host, kept};
    }
  }
  LAZY_ASSIGN_OR_RETURN(const UploadRing::Place image, device->ring.Take(launches.size_bytes(), stream));
  launches.Write(image.host, image.device);
  LAZY_RETURN_IF_CUDA_ERROR(driver_, MemcpyHtoDAsync(image.device, image.host, device_bytes, stream),
                            "cuMemcpyHtoDAsync of ", device_bytes, " bytes of arguments of ", first->name);
  if (!launches.has_tables())
    LAZY_RETURN_IF_ERROR(
        device->kept.Note(first, {reinterpret_cast<double*>(image.host), device_bytes / sizeof(double)}, stream));
  return image;
}

absl::Status CudaBackend::SendAll(const BlockLaunches& launches, bool follows_launch, const UploadRing::Place& image,
                                  cuda::Stream stream) const {
  for (const BlockLaunch& launch : launches.launches()) {
    LAZY_RETURN_IF_ERROR(Send(launch, follows_launch, image, stream));
    follows_launch = true;
  }
  return absl::OkStatus();
}

// A kernel may begin before a former one of ours has ended: its text waits for that (lazy_await_former in
// codegen/cuda/math_text.cc). A library's kernel lets none begin earlier, so there it would gain nothing. The driver
// copies what parameters point to before it returns.
absl::Status CudaBackend::Send(const BlockLaunch& launch, bool follows_launch, const UploadRing::Place& image,
                               cuda::Stream stream) const {
  base::Count(base::Counter::kKernelLaunches);
  const BlockKernel& kernel = *launch.kernel;
  cuda::DevicePointer table = image.device + launch.arguments_at;
  cuda::DevicePointer first_block = image.device + launch.first_block_at;
  int count = static_cast<int>(launch.instances.size());
  void* many[] = {&table, &first_block, &count};
  void* by_value[] = {image.host + launch.arguments_at};
  const cuda::LaunchAttribute overlap{cuda::kBeginsBeforeFormerEnds, {.number = 1}};
  const cuda::LaunchConfig config{
      .blocks = {static_cast<unsigned>(launch.blocks), static_cast<unsigned>(launch.grid_y()), 1},
      .threads = {static_cast<unsigned>(kernel.threads), 1, 1},
      .shared_bytes = 0,
      .stream = stream,
      .attributes = &overlap,
      .num_attributes = can_overlap_ && follows_launch ? 1u : 0u};
  LAZY_RETURN_IF_CUDA_ERROR(
      driver_,
      LaunchKernel(&config, static_cast<cuda::Function>(EntryOf(launch)), launch.is_many() ? many : by_value,
                   /*extra=*/nullptr),
      "cuLaunchKernelEx of ", kernel.name, ", ", launch.blocks, " blocks of ", kernel.threads, " threads");
  return absl::OkStatus();
}

void* CudaBackend::Allocate(size_t size_bytes) {
  if (base::MustFail()) return nullptr;
  const auto bytes = static_cast<int64_t>(std::max<size_t>(size_bytes, 1));
  const absl::StatusOr<void*> memory = host_.allocate(static_cast<size_t>(bytes));
  if (!memory.ok()) return nullptr;
  base::Count(base::Counter::kBytesLive, bytes);
  base::RaiseTo(base::Counter::kBytesPeak, live_bytes_.fetch_add(bytes) + bytes);
  return *memory;
}

void CudaBackend::Free(void* memory, size_t size_bytes) {
  const auto bytes = static_cast<int64_t>(std::max<size_t>(size_bytes, 1));
  live_bytes_.fetch_sub(bytes);
  base::Count(base::Counter::kBytesLive, -bytes);
  host_.free(memory, static_cast<size_t>(bytes));
}

}  // namespace torch_lazy::backends
