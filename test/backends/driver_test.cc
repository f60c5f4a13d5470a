// SPDX-License-Identifier: Apache-2.0
// With a driver that fails where the test says: each fault is a status, and what comes after it works.
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "base/flags.h"
#include "test/backends/block_kernels.h"
#include "test/backends/kernel.h"
#include "test/backends/nvrtc.h"

namespace torch_lazy::backends {
namespace {

constexpr std::array<cuda::Result, 5> kFaults = {2, 4, 700, 719, 999};

// What the driver and PyTorch's allocator do.
struct World {
  int calls = 0;
  int first_fault = -1;   // the call that fails; negative: none
  bool for_ever = false;  // and all later ones
  cuda::Result fault = 0;
  std::set<void*> memory;
  std::set<cuda::Event> events;
  cuda::Context context = nullptr;
  bool is_captured = false;          // launches are
  bool follows_launch = false;       // launches follow one
  int major = 9;                     // of the device's capability
  std::vector<unsigned> attributes;  // of the last launch

  bool Fails() {
    const int call = calls++;
    return first_fault >= 0 && (for_ever ? call >= first_fault : call == first_fault);
  }
  bool HasFailed() const { return first_fault >= 0 && calls > first_fault; }
};

World world;

// What is left of the last one's memory nobody reads any more.
void BeginAnew(int first_fault = -1, cuda::Result fault = 0, bool for_ever = false) {
  for (void* const memory : world.memory) ::operator delete(memory);
  world = World();
  world.first_fault = first_fault;
  world.fault = fault;
  world.for_ever = for_ever;
}

void* NewMemory(size_t size_bytes) { return *world.memory.insert(::operator new(size_bytes)).first; }

void DropMemory(void* memory) {
  ASSERT_EQ(world.memory.erase(memory), 1u);
  ::operator delete(memory);
}

// x = scalar 0 * x + scalar 1, of an instance's arguments as struct Arguments in codegen/plan/plan.h says.
void Step(const int64_t* arguments) {
  const auto* const scalars = reinterpret_cast<const double*>(arguments[0]);
  auto* const x = reinterpret_cast<double*>(arguments[2]);
  for (int64_t i = 0; i < arguments[1]; ++i) x[i] = scalars[0] * x[i] + scalars[1];
}

cuda::Result Launch(const cuda::LaunchConfig* config, cuda::Function function, void** parameters, void**) {
  if (world.Fails()) return world.fault;
  world.attributes.clear();
  for (unsigned k = 0; k < config->num_attributes; ++k) world.attributes.push_back(config->attributes[k].id);
  if (world.is_captured) return 0;
  if (function == reinterpret_cast<cuda::Function>(1)) {
    Step(static_cast<const int64_t*>(parameters[0]));
    return 0;
  }
  constexpr int kWords = 3;
  const auto* const table = *static_cast<const int64_t* const*>(parameters[0]);
  for (int k = 0; k < *static_cast<const int*>(parameters[2]); ++k) Step(table + k * kWords);
  return 0;
}

const cuda::Driver& FaultyDriver() {
  static const cuda::Driver driver = [] {
    cuda::Driver made = {};
    made.GetErrorName = [](cuda::Result, const char** text) { return *text = "FAULT", 0; };
    made.GetErrorString = [](cuda::Result, const char** text) { return *text = "a fault", 0; };
    made.DeviceGet = [](cuda::Device* device, int) {
      *device = 0;
      return world.Fails() ? world.fault : 0;
    };
    made.DeviceGetAttribute = [](int* value, int attribute, cuda::Device) {
      *value = attribute == cuda::kCapabilityMinor ? 0 : world.major;
      return world.Fails() ? world.fault : 0;
    };
    made.DevicePrimaryCtxRetain = [](cuda::Context* context, cuda::Device) {
      *context = reinterpret_cast<cuda::Context>(8);
      return world.Fails() ? world.fault : 0;
    };
    made.CtxGetCurrent = [](cuda::Context* context) {
      *context = world.context;
      return world.Fails() ? world.fault : 0;
    };
    made.CtxSetCurrent = [](cuda::Context context) {
      if (world.Fails()) return world.fault;
      world.context = context;
      return 0;
    };
    made.LibraryLoadData = [](cuda::Library*, const void*, int*, void**, unsigned, int*, void**, unsigned) {
      return world.Fails() ? world.fault : 0;
    };
    made.LibraryGetKernel = [](cuda::Kernel* kernel, cuda::Library, const char* name) {
      const bool is_many = std::string(name).find("_many") != std::string::npos;
      *kernel = reinterpret_cast<cuda::Kernel>(is_many ? 2 : 1);
      return world.Fails() ? world.fault : 0;
    };
    made.KernelGetFunction = [](cuda::Function*, cuda::Kernel) { return world.Fails() ? world.fault : 0; };
    made.FuncGetAttribute = [](int* value, int, cuda::Function) {
      *value = 1024;
      return world.Fails() ? world.fault : 0;
    };
    made.LaunchKernel = &Launch;
    made.MemHostAlloc = [](void** memory, size_t size_bytes, unsigned) {
      if (world.Fails()) return world.fault;
      *memory = NewMemory(size_bytes);
      return 0;
    };
    made.MemFreeHost = [](void* memory) {
      if (world.Fails()) return world.fault;
      DropMemory(memory);
      return 0;
    };
    made.MemcpyHtoDAsync = [](cuda::DevicePointer to, const void* from, size_t size_bytes, cuda::Stream) {
      if (world.Fails()) return world.fault;
      std::memcpy(reinterpret_cast<void*>(to), from, size_bytes);
      return 0;
    };
    made.EventCreate = [](cuda::Event* event, unsigned) {
      static uintptr_t last = 0;
      if (world.Fails()) return world.fault;
      *event = *world.events.insert(reinterpret_cast<cuda::Event>(++last)).first;
      return 0;
    };
    made.EventRecord = [](cuda::Event, cuda::Stream) { return world.Fails() ? world.fault : 0; };
    made.EventSynchronize = [](cuda::Event) { return world.Fails() ? world.fault : 0; };
    made.EventQuery = [](cuda::Event) { return world.Fails() ? world.fault : 0; };
    made.EventDestroy = [](cuda::Event event) {
      world.events.erase(event);
      return world.Fails() ? world.fault : 0;
    };
    return made;
  }();
  return driver;
}

const CudaHost kHost = {[] { return 0; },
                        [](size_t size_bytes) -> absl::StatusOr<void*> {
                          if (world.Fails()) return absl::ResourceExhaustedError("no memory");
                          return NewMemory(size_bytes);
                        },
                        [](void* memory, size_t) { DropMemory(memory); }, []() -> void* { return nullptr; }};

// Made without a fault: calls are counted from here on.
CudaBackend* NewBackend(int first_fault = -1, cuda::Result fault = 0, bool for_ever = false) {
  BeginAnew();
  CudaBackend* const backend = *CudaBackend::Make(FaultyDriver(), kHost);
  BeginAnew(first_fault, fault, for_ever);
  return backend;
}

// Launches that take every way there is, on one array; what fails is done again.
class Work {
 public:
  explicit Work(CudaBackend* backend) : backend_(*backend) {
    kernel_.name = "step";
    kernel_.threads = kernel_.iterations_per_block = 32;
    kernel_.one = reinterpret_cast<void*>(1);
    kernel_.many = reinterpret_cast<void*>(2);
  }

  // All failures, in order. With `patience` 1 what fails is left.
  std::vector<absl::Status> Run(int patience) {
    for (const double number : {3.0, 3.0, 3.0, 5.0, 3.0}) LaunchSteps({{0.5, number}}, patience);
    for (int n = 0; n < 40; ++n) LaunchSteps({{1.0, n + 0.5}}, patience, 8000);  // round the ring
    LaunchSteps(std::vector<Numbers>(3, {0.5, 1.0}), patience);                  // by a table
    LaunchSteps({{0.5, 1.0}}, patience, 100000);                                 // more than a part of the ring
    Record(patience);
    return failures_;
  }
  bool IsRight() const { return x_ == expected_; }

 private:
  using Numbers = std::array<double, 2>;

  bool Try(int patience, const std::function<absl::Status()>& work) {
    for (int n = 0; n < patience; ++n) {
      const absl::Status status = work();
      if (status.ok()) return true;
      failures_.push_back(status);
    }
    return false;
  }

  // Each instance has the same element, and so many more numbers that nobody reads.
  absl::Status Send(absl::Span<const Numbers> numbers, size_t more = 0) {
    void* const buffer = &x_;
    std::vector<BoundInstance> instances(numbers.size());
    std::vector<std::vector<double>> scalars;
    for (const Numbers& step : numbers) {
      scalars.emplace_back(step.begin(), step.end());
      scalars.back().resize(step.size() + more);
    }
    for (size_t k = 0; k < numbers.size(); ++k) {
      instances[k].function = &kernel_;
      instances[k].buffers = absl::MakeConstSpan(&buffer, 1);
      instances[k].scalars = scalars[k];
      instances[k].iterations = 1;
      instances[k].follows_launch = world.follows_launch;
    }
    return backend_.Launch(instances);
  }

  void LaunchSteps(const std::vector<Numbers>& numbers, int patience, size_t more = 0) {
    if (Try(patience, [&] { return Send(numbers, more); })) Expect(numbers);
  }

  // What a graph would launch again, with other numbers.
  void Record(int patience) {
    std::unique_ptr<LaunchRecord> record;
    const std::vector<Numbers> numbers(3, {1.0, 2.0});
    Try(patience, [&] {
      absl::StatusOr<std::unique_ptr<LaunchRecord>> begun = backend_.BeginRecord(4096);
      if (begun.ok()) record = *std::move(begun);
      return begun.status();
    });
    if (record == nullptr) return;
    world.is_captured = true;
    const absl::Status captured = Send(numbers);
    world.is_captured = false;
    backend_.EndRecord();
    if (!captured.ok()) return failures_.push_back(captured);  // as a graph is given up then
    for (const double number : {1.0, 1.0, 2.0}) {
      const std::vector<double> scalars = {1.0, number, 1.0, number, 1.0, number};
      Try(patience, [&] { return record->Update(scalars); });
    }
  }

  void Expect(const std::vector<Numbers>& numbers) {
    for (const Numbers& step : numbers) expected_ = step[0] * expected_ + step[1];
  }

  CudaBackend& backend_;
  BlockKernel kernel_;
  double x_ = 1, expected_ = 1;
  std::vector<absl::Status> failures_;
};

class FaultyDriverTest : public testing::Test {
 protected:
  static void CheckStatus(const absl::Status& status, cuda::Result fault) {
    EXPECT_EQ(absl::IsResourceExhausted(status), fault == cuda::kOutOfMemory || status.message() == "no memory")
        << status;
    EXPECT_EQ(absl::IsCancelled(status), fault == cuda::kDeinitialized && status.message() != "no memory");
    if (status.message() == "no memory") return;
    EXPECT_EQ(NumberOfDeviceError(status), fault);
    const std::string says = fault == cuda::kOutOfMemory ? "CUDA out of memory. (cu" : "CUDA error: a fault (cu";
    EXPECT_EQ(std::string(status.message()).substr(0, says.size()), says);
  }
};

TEST_F(FaultyDriverTest, WithoutAFaultEverythingIsRight) {
  Work work(NewBackend());
  EXPECT_TRUE(work.Run(1).empty());
  EXPECT_TRUE(work.IsRight());
}

// A device of capability 8 knows no kernels that begin before the former one has ended.
TEST_F(FaultyDriverTest, KernelsBeginBeforeTheFormerOfOursEndsWhereTheDeviceKnowsThat) {
  ASSERT_TRUE(Work(NewBackend()).Run(1).empty());
  EXPECT_TRUE(world.attributes.empty());  // who knows what was before
  CudaBackend* const backend = NewBackend();
  world.follows_launch = true;
  ASSERT_TRUE(Work(backend).Run(1).empty());
  EXPECT_EQ(world.attributes, std::vector<unsigned>{cuda::kBeginsBeforeFormerEnds});
  BeginAnew();
  world.follows_launch = true;
  world.major = 8;
  const absl::StatusOr<CudaBackend*> older = CudaBackend::Make(FaultyDriver(), kHost);
  ASSERT_TRUE(older.ok());
  ASSERT_TRUE(Work(*older).Run(1).empty());
  EXPECT_TRUE(world.attributes.empty());
}

TEST_F(FaultyDriverTest, OneFaultAtEachCallIsAStatusAndWhatFailedCanBeDoneAgain) {
  int faults = 0;
  for (const cuda::Result fault : kFaults) {
    for (int call = 0;; ++call) {
      Work work(NewBackend(call, fault));
      const std::vector<absl::Status> failures = work.Run(2);
      if (!world.HasFailed()) break;
      ++faults;
      // Memory for numbers that stay can be done without, and so can the end of an event or a context.
      ASSERT_LE(failures.size(), 1u) << call;
      for (const absl::Status& status : failures) CheckStatus(status, fault);
      EXPECT_TRUE(work.IsRight()) << call;
      EXPECT_TRUE(failures.empty() || world.context == nullptr) << call;  // it is put back
    }
  }
  std::printf("%d faults\n", faults);
  EXPECT_GT(faults, 5 * 60);
}

TEST_F(FaultyDriverTest, ALostDeviceIsAStatusForEver) {
  for (const cuda::Result fault : {cuda::kDeinitialized, 700}) {
    for (int call = 0;; ++call) {
      CudaBackend* const backend = NewBackend(call, fault, /*for_ever=*/true);
      Work work(backend);
      const std::vector<absl::Status> failures = work.Run(1);
      if (!world.HasFailed()) break;
      for (const absl::Status& status : failures) CheckStatus(status, fault);
      world.first_fault = -1;  // it is back
      Work(backend).Run(1);
    }
  }
}

TEST_F(FaultyDriverTest, ABackendThatCannotBeMadeIsAStatus) {
  for (const cuda::Result fault : kFaults) {
    for (int call = 0;; ++call) {
      BeginAnew(call, fault);
      const absl::StatusOr<CudaBackend*> made = CudaBackend::Make(FaultyDriver(), kHost);
      if (!world.HasFailed()) break;
      ASSERT_FALSE(made.ok());
      CheckStatus(made.status(), fault);
      EXPECT_TRUE(CudaBackend::Make(FaultyDriver(), kHost).ok());
    }
  }
}

TEST_F(FaultyDriverTest, KernelsThatCannotBeLoadedAreAStatus) {
  LAZY_ASSERT_NVRTC();
  ASSERT_TRUE(base::SetOption("cache_dir", NewFolder()).ok());
  int faults = 0;
  for (;; ++faults) {
    CudaBackend* const backend = NewBackend(faults, 700);
    const codegen::Kernel kernel = BlockKernelText("step", 32, 32, "void* buffers[1];", "");
    const std::shared_ptr<Module> module = backend->Compile({kernel}, /*wait=*/true);
    ASSERT_TRUE(module->ready());
    if (!world.HasFailed()) break;
    if (module->status().ok()) continue;  // the former context could not be put back
    EXPECT_EQ(NumberOfDeviceError(module->status()), 700);
  }
  EXPECT_GT(faults, 5);
}

}  // namespace
}  // namespace torch_lazy::backends
