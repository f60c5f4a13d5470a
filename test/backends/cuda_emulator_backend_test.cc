// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/cuda_emulator/cuda_emulator_backend.h"
#include "base/flags.h"
#include "base/metrics.h"
#include "test/backends/block_kernels.h"
#include "test/backends/kernel.h"

namespace torch_lazy::backends {
namespace {

class CudaEmulator : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    SetOptionAnew("cache_dir", NewFolder());
    GTEST_FLAG_SET(death_test_style, "fast");
  }
  static BlockMemory Memory() {
    static CudaEmulatorBackend& backend = *new CudaEmulatorBackend;  // its table may have a thread
    const auto copy = [](void* to, const void* from, size_t size_bytes) {
      if (size_bytes != 0) std::memcpy(to, from, size_bytes);
    };
    return {backend, copy, copy};
  }

  // Runs blocks of 64 threads that write a float each to buffer 0, and returns these.
  static std::vector<float> Run(const std::string& name, const std::string& body, int64_t blocks) {
    BlockMemory memory = Memory();
    const auto module = CompileBlockKernels(memory.backend, {BlockKernelText(name, 64, 64, "void* buffers[1];", body)});
    if (!module->status().ok()) return {};
    DeviceArray<float> y(memory, std::vector<float>(64 * blocks, -1.0f));
    void* const pointer = y.data();
    BoundInstance instance;
    instance.function = module->Function(0);
    instance.buffers = absl::MakeConstSpan(&pointer, 1);
    instance.iterations = 64 * blocks;
    EXPECT_TRUE(memory.backend.Launch(absl::MakeConstSpan(&instance, 1)).ok());
    return y.values();
  }
};

constexpr char kNeighbour[] = R"(
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = t;
  WAIT
  ((float*)a.buffers[0])[block * 64 + t] = s[(t + 1) % 64];)";

TEST_F(CudaEmulator, RunsAnInstanceByValue) {
  for (const int64_t size : {1, 127, 128, 129, 100000}) CheckScale(Memory(), {size});
}

TEST_F(CudaEmulator, RunsManyInstancesInOneLaunch) {
  const int64_t before = base::Get(base::Counter::kKernelLaunches);
  CheckScale(Memory(), {5, 0, 1000, 128, 1, 0, 4097});
  EXPECT_EQ(base::Get(base::Counter::kKernelLaunches), before + 1);
  CheckScale(Memory(), std::vector<int64_t>(300, 200));
}

TEST_F(CudaEmulator, NoIterationsAreNoLaunch) {
  const int64_t before = base::Get(base::Counter::kKernelLaunches);
  CheckScale(Memory(), {0, 0});
  EXPECT_EQ(base::Get(base::Counter::kKernelLaunches), before);
}

TEST_F(CudaEmulator, ReducesThroughShufflesAndSharedMemory) {
  for (const int64_t columns : {1, 31, 256, 5000}) {
    CheckRowSums(Memory(), 5, columns, /*many=*/false);
    CheckRowSums(Memory(), 5, columns, /*many=*/true);
  }
}

TEST_F(CudaEmulator, ExchangesWithinWarps) {
  for (const int64_t size : {32, 64, 1000}) CheckWarps(Memory(), size);
}

TEST_F(CudaEmulator, ABarrierOrdersWhatThreadsShare) {
  const auto values = Run("ordered", absl::StrReplaceAll(kNeighbour, {{"WAIT", "__syncthreads();"}}), 4);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], (i + 1) % 64);
}

TEST_F(CudaEmulator, AMissingBarrierShowsInEachOrder) {
  const auto values = Run("racing", absl::StrReplaceAll(kNeighbour, {{"WAIT", ""}}), 2);
  for (const size_t block : {0, 1}) {
    int wrong = 0;
    for (int t = 0; t < 64; ++t) wrong += values[block * 64 + t] == (t + 1) % 64 ? 0 : 1;
    EXPECT_GT(wrong, 0) << "block " << block;
  }
  EXPECT_TRUE(std::isnan(values[0]) || std::isnan(values[64]));
}

TEST_F(CudaEmulator, SharedMemoryBeginsAsGarbageInEachBlock) {
  const auto values = Run("unset", R"(
  __shared__ float s[64];
  ((float*)a.buffers[0])[block * 64 + threadIdx.x] = s[threadIdx.x];
  s[threadIdx.x] = 1;)",
                          3);
  for (const float value : values) EXPECT_TRUE(std::isnan(value)) << value;
}

TEST_F(CudaEmulator, ThreadsThatHaveReturnedAreNotWaitedFor) {
  const auto values = Run("early", R"(
  if (threadIdx.x >= 40) return;
  __syncthreads();
  const float sum = __shfl_xor_sync(0xffffffffu, (float)threadIdx.x, 1);
  ((float*)a.buffers[0])[block * 64 + threadIdx.x] = sum;)",
                          1);
  for (int t = 0; t < 64; ++t) EXPECT_EQ(values[t], t >= 40 ? -1.0f : static_cast<float>(t ^ 1));
}

TEST_F(CudaEmulator, PartsOfAWarpExchangeByThemselves) {
  const auto values = Run("parts", R"(
  const int t = threadIdx.x;
  float x = t;
  if (t % 32 < 8) {
    x = __shfl_xor_sync(0xffu, x, 7);
  } else {
    x = __shfl_xor_sync(0xffffff00u, x, 8, 16) + 100;
  }
  ((float*)a.buffers[0])[block * 64 + t] = x;)",
                          1);
  for (int t = 0; t < 64; ++t) {
    if (t % 32 < 8) {
      EXPECT_EQ(values[t], t ^ 7);
    } else if (((t ^ 8) & 31) >= 8) {
      EXPECT_EQ(values[t], (t ^ 8) + 100) << t;
    } else {
      EXPECT_TRUE(std::isnan(values[t])) << t;  // a lane that takes no part
    }
  }
}

TEST_F(CudaEmulator, DoublesAndLongsAreShuffledWhole) {
  const auto values = Run("wide", R"(
  const double x = __shfl_xor_sync(0xffffffffu, threadIdx.x + 0.1, 3);
  const long y = __shfl_xor_sync(0xffffffffu, (long)threadIdx.x << 40, 3);
  ((float*)a.buffers[0])[block * 64 + threadIdx.x] =
      x == (threadIdx.x ^ 3) + 0.1 && y == (long)(threadIdx.x ^ 3) << 40;)",
                          1);
  for (const float value : values) EXPECT_EQ(value, 1.0f);
}

TEST_F(CudaEmulator, KnowsCudasWords) { CheckWords(Memory()); }

using CudaEmulatorDeath = CudaEmulator;

TEST_F(CudaEmulatorDeath, WhereSomeThreadsWaitForTheirBlockElsewhere) {
  EXPECT_DEATH(Run("elsewhere", R"(
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  })",
                   1),
               "elsewhere: block 0: thread 0 waits for its block .* while thread 32 waits for its block");
}

TEST_F(CudaEmulatorDeath, WhereSomeThreadsNeverComeToAShuffle) {
  EXPECT_DEATH(Run("absent", R"(
  float x = threadIdx.x;
  if (threadIdx.x % 32 < 16) x = __shfl_xor_sync(0xffffffffu, x, 1);
  __syncthreads();
  ((float*)a.buffers[0])[block * 64 + threadIdx.x] = x;)",
                   1),
               "absent: block 0: thread 0 waits for lanes ffffffff .* while thread 16 waits for its block");
}

TEST_F(CudaEmulatorDeath, WhereAWarpWaitsAtTwoPlaces) {
  EXPECT_DEATH(Run("two_places", R"(
  if (threadIdx.x % 2 == 0) {
    __syncwarp();
  } else {
    __syncwarp(0xffffffffu);
  })",
                   1),
               "two_places: block 0: thread 0 waits for lanes .* while thread 1 waits for lanes");
}

TEST_F(CudaEmulatorDeath, WhereALaneIsNotInItsMask) {
  EXPECT_DEATH(Run("outside", "__syncwarp(0xfffffffeu);", 1), "thread 0 waits .* is not one of these");
}

TEST_F(CudaEmulator, TextsOfOneProgramMayUseTheSameNames) {
  BlockMemory memory = Memory();
  std::vector<codegen::Kernel> kernels;
  for (int k = 0; k < 12; ++k) {
    kernels.push_back(BlockKernelText(absl::StrCat("same_", k), 64, 64, "void* buffers[1];",
                                      absl::StrCat("__shared__ float s[64]; s[threadIdx.x] = ", k,
                                                   "; __syncthreads(); ((float*)a.buffers[0])"
                                                   "[threadIdx.x] += s[63 - threadIdx.x];")));
  }
  const absl::Time start = absl::Now();
  const auto module = CompileBlockKernels(memory.backend, kernels);
  RecordProperty("compile_ms", absl::ToInt64Milliseconds(absl::Now() - start));
  DeviceArray<float> y(memory, std::vector<float>(64));
  void* const pointer = y.data();
  for (int k = 0; k < 12; ++k) {
    BoundInstance instance;
    instance.function = module->Function(k);
    instance.buffers = absl::MakeConstSpan(&pointer, 1);
    instance.iterations = 64;
    EXPECT_TRUE(memory.backend.Launch(absl::MakeConstSpan(&instance, 1)).ok());
  }
  EXPECT_EQ(y.values(), std::vector<float>(64, 66.0f));
}

}  // namespace
}  // namespace torch_lazy::backends
