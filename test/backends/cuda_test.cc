// SPDX-License-Identifier: Apache-2.0
// Needs a GPU.
#include <chrono>
#include <cstdio>
#include <thread>

#include "absl/strings/str_cat.h"
#include "backends/cuda/cuda_backend.h"
#include "base/check.h"
#include "base/flags.h"
#include "base/metrics.h"
#include "test/backends/block_kernels.h"
#include "test/backends/kernel.h"
#include "test/backends/nvrtc.h"

namespace torch_lazy::backends {
namespace {

const cuda::Driver& TheDriver() {
  const auto driver = cuda::FindDriver();
  LAZY_CHECK(driver.ok(), driver.status().message());
  return **driver;
}

// Stands for PyTorch: plain memory, one stream, or another where a test says so.
thread_local cuda::Stream current_stream = nullptr;

absl::StatusOr<void*> AllocatePlainly(size_t size_bytes) {
  cuda::DevicePointer memory = 0;
  LAZY_RETURN_IF_CUDA_ERROR(TheDriver(), MemAlloc(&memory, size_bytes), "cuMemAlloc");
  return reinterpret_cast<void*>(memory);
}

void FreePlainly(void* memory, size_t) { EXPECT_EQ(TheDriver().MemFree(reinterpret_cast<uint64_t>(memory)), 0); }

const CudaHost kHost = {[] { return 0; }, AllocatePlainly, FreePlainly, []() -> void* { return current_stream; }};

class Cuda : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    OpenTorch();
    SetOptionAnew("cache_dir", NewFolder());
    const absl::StatusOr<CudaBackend*> made = CudaBackend::Make(kHost);
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *made;
    const cuda::Driver& driver = TheDriver();
    cuda::Device device = 0;
    cuda::Context context = nullptr;
    ASSERT_EQ(driver.DeviceGet(&device, 0), 0);
    ASSERT_EQ(driver.DevicePrimaryCtxRetain(&context, device), 0);
    ASSERT_EQ(driver.CtxSetCurrent(context), 0);
    context_ = context;
    // 1: CU_STREAM_NON_BLOCKING. Nothing but its own order holds its work back.
    for (cuda::Stream& stream : streams_) ASSERT_EQ(driver.StreamCreate(&stream, 1), 0);
  }
  void SetUp() override {
    ASSERT_NE(backend_, nullptr);
    current_stream = streams_[0];
  }
  static void Wait() { EXPECT_EQ(TheDriver().StreamSynchronize(current_stream), 0); }
  static BlockMemory Memory() {
    return {
        *backend_,
        [](void* to, const void* from, size_t size_bytes) {
          if (size_bytes == 0) return;
          EXPECT_EQ(TheDriver().MemcpyHtoDAsync(reinterpret_cast<uint64_t>(to), from, size_bytes, current_stream), 0);
          Wait();
        },
        [](void* to, const void* from, size_t size_bytes) {
          if (size_bytes == 0) return;
          EXPECT_EQ(TheDriver().MemcpyDtoHAsync(to, reinterpret_cast<uint64_t>(from), size_bytes, current_stream), 0);
          Wait();
        }};
  }

  inline static CudaBackend* backend_ = nullptr;
  inline static cuda::Context context_ = nullptr;
  inline static cuda::Stream streams_[2] = {};
};

// x = scalar 0 * x + scalar 1.
codegen::Kernel StepKernel() {
  return BlockKernelText("step", 32, 32, "void* buffers[1];", R"(
  const long i = block * 32 + threadIdx.x;
  float* x = (float*)a.buffers[0];
  if (i < a.iterations) x[i] = (float)a.scalars[0] * x[i] + (float)a.scalars[1];)");
}

// Takes some milliseconds, so that what is sent after it waits.
codegen::Kernel SlowKernel() {
  return BlockKernelText("slow", 32, 32, "void* buffers[1];", R"(
  const long start = clock64();
  while (clock64() - start < 20000000) {}
  if (threadIdx.x == 0) ((float*)a.buffers[0])[0] += 1;)");
}

TEST_F(Cuda, SaysWhatItIs) {
  EXPECT_EQ(backend_->target(), codegen::Target::kCuda);
  EXPECT_FALSE(backend_->on_host());
}

TEST_F(Cuda, RunsAnInstanceByValue) {
  for (const int64_t size : {1, 127, 128, 129, 1000000}) CheckScale(Memory(), {size});
}

TEST_F(Cuda, RunsManyInstancesInOneLaunch) {
  const int64_t before = base::Get(base::Counter::kKernelLaunches);
  CheckScale(Memory(), {5, 0, 1000, 128, 1, 0, 4097});
  EXPECT_EQ(base::Get(base::Counter::kKernelLaunches), before + 1);
}

TEST_F(Cuda, NoIterationsAreNoLaunch) {
  const int64_t before = base::Get(base::Counter::kKernelLaunches);
  CheckScale(Memory(), {0, 0});
  EXPECT_EQ(base::Get(base::Counter::kKernelLaunches), before);
}

TEST_F(Cuda, ReducesThroughShufflesAndSharedMemory) {
  for (const int64_t columns : {1, 31, 256, 5000}) {
    CheckRowSums(Memory(), 1000, columns, /*many=*/false);
    CheckRowSums(Memory(), 300, columns, /*many=*/true);
  }
}

TEST_F(Cuda, ExchangesWithinWarps) {
  for (const int64_t size : {32, 1000, 100000}) CheckWarps(Memory(), size);
}

TEST_F(Cuda, WordsMeanWhatTheEmulatorTakesThemFor) { CheckWords(Memory()); }

TEST_F(Cuda, ATableLargerThanThePartsOfTheRingFits) {
  CheckScale(Memory(), std::vector<int64_t>(9000, 3));
  CheckScale(Memory(), {1000});
}

// Each launch reads its own scalars, though thousands are sent before the first has run, so that
// the ring goes round: 3000 images of 3 KB fill it four times.
TEST_F(Cuda, LaunchesThatAreSentAheadKeepTheirArguments) {
  constexpr int kLaunches = 3000, kInstances = 64;
  BlockMemory memory = Memory();
  const auto module = CompileBlockKernels(memory.backend, {StepKernel(), SlowKernel()});
  ASSERT_TRUE(module->status().ok());
  DeviceArray<float> x(memory, std::vector<float>(32 * kInstances, 1.0f)), slow(memory, {0.0f});
  void* const slow_pointer = slow.data();
  BoundInstance hold;
  hold.function = module->Function(1);
  hold.buffers = absl::MakeConstSpan(&slow_pointer, 1);
  hold.iterations = 1;
  ASSERT_TRUE(backend_->Launch(absl::MakeConstSpan(&hold, 1)).ok());
  std::vector<void*> pointers;
  for (int k = 0; k < kInstances; ++k) pointers.push_back(static_cast<float*>(x.data()) + 32 * k);
  std::vector<float> expected(kInstances, 1.0f);
  for (int n = 0; n < kLaunches; ++n) {
    std::vector<std::vector<double>> scalars;  // gone before the launch has run
    std::vector<BoundInstance> instances(kInstances);
    for (int k = 0; k < kInstances; ++k) scalars.push_back({0.5, static_cast<double>((n * 7 + k) % 64)});
    for (int k = 0; k < kInstances; ++k) {
      instances[k].function = module->Function(0);
      instances[k].buffers = absl::MakeConstSpan(&pointers[k], 1);
      instances[k].scalars = scalars[k];
      instances[k].iterations = 32;
      expected[k] = 0.5f * expected[k] + static_cast<float>(scalars[k][1]);
    }
    ASSERT_TRUE(backend_->Launch(instances).ok());
  }
  const std::vector<float> values = x.values();
  for (int k = 0; k < 32 * kInstances; ++k) ASSERT_EQ(values[k], expected[k / 32]) << k;
}

// Numbers that were given twice are uploaded no more: behind a copy that a kernel holds back, and when it is done;
// others come between, on either stream.
TEST_F(Cuda, NumbersThatStayAreRead) {
  BlockMemory memory = Memory();
  const auto module = CompileBlockKernels(memory.backend, {StepKernel(), SlowKernel()});
  ASSERT_TRUE(module->status().ok());
  DeviceArray<float> x(memory, {0.0f}), dummy(memory, {0.0f});
  void* const buffer = x.data();
  void* const other = dummy.data();
  BoundInstance step, slow;
  step.function = module->Function(0);
  step.buffers = absl::MakeConstSpan(&buffer, 1);
  step.iterations = 1;
  slow.function = module->Function(1);
  slow.buffers = absl::MakeConstSpan(&other, 1);
  slow.iterations = 1;
  float expected = 0;
  int k = 0;
  for (const cuda::Stream stream : {streams_[0], streams_[1], streams_[0]}) {
    current_stream = stream;
    ASSERT_TRUE(memory.backend.Launch({slow}).ok());
    for (const double increment : {3.0, 3.0, 3.0, 5.0, 3.0, 3.0, 5.0, 5.0, 3.0}) {
      const double numbers[] = {0.5, increment};
      step.scalars = numbers;
      ASSERT_TRUE(memory.backend.Launch({step}).ok());
      expected = 0.5f * expected + static_cast<float>(increment);
      if (++k % 4 == 0) Wait();
    }
    Wait();
    ASSERT_EQ(x.values()[0], expected);
  }
}

TEST_F(Cuda, ALaunchDoesNotWaitForTheDevice) {
  BlockMemory memory = Memory();
  const auto module = CompileBlockKernels(memory.backend, {SlowKernel(), StepKernel()});
  DeviceArray<float> x(memory, {0.0f});
  void* const pointer = x.data();
  const double scalars[] = {1.0, 0.0};
  BoundInstance slow, step;
  slow.function = module->Function(0);
  step.function = module->Function(1);
  slow.buffers = step.buffers = absl::MakeConstSpan(&pointer, 1);
  slow.iterations = step.iterations = 1;
  step.scalars = scalars;
  ASSERT_TRUE(backend_->Launch({&slow, 1}).ok());  // its first launch loads it
  ASSERT_TRUE(backend_->Launch({&step, 1}).ok());
  Wait();
  const auto start = std::chrono::steady_clock::now();
  for (int n = 0; n < 10; ++n) {
    ASSERT_TRUE(backend_->Launch({&slow, 1}).ok());
    ASSERT_TRUE(backend_->Launch({&step, 1}).ok());
  }
  const auto sent = std::chrono::steady_clock::now() - start;
  Wait();
  const auto done = std::chrono::steady_clock::now() - start;
  EXPECT_LT(sent, done / 4);
  EXPECT_EQ(x.values(), std::vector<float>{11.0f});
}

TEST_F(Cuda, WorksFromAThreadWithoutAContextAndOnAnotherStream) {
  std::thread([&] {
    const cuda::Driver& driver = TheDriver();
    cuda::Context context = nullptr;
    ASSERT_EQ(driver.CtxSetCurrent(context_), 0);
    current_stream = streams_[1];
    CheckScale(Memory(), {1000, 7});
    BlockMemory memory = Memory();
    const auto module = CompileBlockKernels(memory.backend, {StepKernel()});
    DeviceArray<float> x(memory, {3.0f});
    void* const pointer = x.data();
    const double scalars[] = {2.0, 1.0};
    BoundInstance step;
    step.function = module->Function(0);
    step.buffers = absl::MakeConstSpan(&pointer, 1);
    step.iterations = 1;
    step.scalars = scalars;
    ASSERT_EQ(driver.CtxSetCurrent(nullptr), 0);
    ASSERT_TRUE(backend_->Launch({&step, 1}).ok());
    ASSERT_EQ(driver.CtxGetCurrent(&context), 0);
    EXPECT_EQ(context, nullptr);  // as it was
    ASSERT_EQ(driver.CtxSetCurrent(context_), 0);
    EXPECT_EQ(x.values(), std::vector<float>{7.0f});
  }).join();
}

TEST_F(Cuda, TurnsOfTwoStreamsKeepTheirArguments) {
  for (int n = 0; n < 50; ++n) {
    current_stream = streams_[n % 2];
    CheckScale(Memory(), {100 + n, 3});
  }
}

TEST_F(Cuda, ANewProcessFindsKernelsOnDisk) {
  base::ResetMetrics();
  const std::vector<codegen::Kernel> kernels = {BlockKernelText("nothing", 64, 128, "void* buffers[1];", "")};
  CompileBlockKernels(*backend_, kernels);
  const absl::StatusOr<CudaBackend*> second = CudaBackend::Make(kHost);
  ASSERT_TRUE(second.ok()) << second.status();
  CompileBlockKernels(**second, kernels);
  EXPECT_EQ(base::Get(base::Counter::kKernelsCompiled), 1);
  EXPECT_EQ(base::Get(base::Counter::kKernelsFromDisk), 1);
}

// Before it is launched, so that something else can be done in its place.
TEST_F(Cuda, AKernelWhoseLaunchWouldBeRefusedCostsNoOther) {
  codegen::Kernel large =
      BlockKernelText("too_large_a_block", 32, 32, "void* buffers[1];", "((int*)a.buffers[0])[threadIdx.x] = 1;");
  large.threads = 1024;  // its text promises the compiler 32
  codegen::Kernel lacking =
      BlockKernelText("lacks_an_entry", 32, 32, "void* buffers[1];", "((int*)a.buffers[0])[threadIdx.x] = 2;");
  lacking.entries.few = true;
  const auto module = backend_->Compile({large, StepKernel(), lacking}, /*wait=*/true);
  EXPECT_THAT(std::string(module->StatusOf(0).message()),
              testing::HasSubstr("blocks of 1024 threads, and its registers suffice for 32"));
  EXPECT_TRUE(module->StatusOf(1).ok()) << module->StatusOf(1);
  EXPECT_THAT(std::string(module->StatusOf(2).message()), testing::HasSubstr("lacks_an_entry_few"));
  EXPECT_TRUE(absl::IsInvalidArgument(module->StatusOf(0)) && absl::IsInvalidArgument(module->StatusOf(2)));
}

TEST_F(Cuda, MemoryIsCounted) {
  const int64_t before = base::Get(base::Counter::kBytesLive);
  void* const memory = backend_->Allocate(1000);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(base::Get(base::Counter::kBytesLive), before + 1000);
  EXPECT_GE(base::Get(base::Counter::kBytesPeak), before + 1000);
  backend_->Free(memory, 1000);
  EXPECT_EQ(base::Get(base::Counter::kBytesLive), before);
  void* const nothing = backend_->Allocate(0);
  EXPECT_NE(nothing, nullptr);
  backend_->Free(nothing, 0);
}

TEST_F(Cuda, AFailedLaunchNamesTheErrorAndTheKernelAndWorkGoesOn) {
  const auto module = CompileBlockKernels(*backend_, {StepKernel()});
  BlockKernel kernel = *static_cast<const BlockKernel*>(module->Function(0));
  kernel.threads = 4096;  // more than a block may have
  void* pointer = nullptr;
  BoundInstance instance;
  instance.function = &kernel;
  instance.buffers = absl::MakeConstSpan(&pointer, 1);
  instance.iterations = 1;
  const absl::Status status = backend_->Launch({&instance, 1});
  EXPECT_THAT(std::string(status.message()),
              testing::ContainsRegex("CUDA error: .*cuLaunchKernelEx of step.*CUDA_ERROR_INVALID_VALUE"));
  EXPECT_EQ(NumberOfDeviceError(status), 1);
  CheckScale(Memory(), {1000});
}

// Prints what a launch costs the host; no check.
TEST_F(Cuda, CostOfALaunch) {
  BlockMemory memory = Memory();
  const auto module = CompileBlockKernels(memory.backend, {StepKernel()});
  DeviceArray<float> x(memory, std::vector<float>(32));
  void* const pointer = x.data();
  const double scalars[] = {1.0, 0.0};
  for (const size_t instances : {1, 2, 100}) {
    BoundInstance step;
    step.function = module->Function(0);
    step.buffers = absl::MakeConstSpan(&pointer, 1);
    step.iterations = 32;
    step.scalars = scalars;
    const std::vector<BoundInstance> all(instances, step);
    constexpr int kTimes = 2000;
    const auto start = std::chrono::steady_clock::now();
    for (int n = 0; n < kTimes; ++n) ASSERT_TRUE(backend_->Launch(all).ok());
    const auto sent = std::chrono::steady_clock::now() - start;
    Wait();
    const auto done = std::chrono::steady_clock::now() - start;
    std::printf("%zu instances: %.2f us sent, %.2f us done\n", instances,
                std::chrono::duration<double, std::micro>(sent).count() / kTimes,
                std::chrono::duration<double, std::micro>(done).count() / kTimes);
  }
}

}  // namespace
}  // namespace torch_lazy::backends
