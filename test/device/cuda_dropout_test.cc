// SPDX-License-Identifier: Apache-2.0
// What CUDA's kernel of dropout does, as far as the CPU can tell.
#include "device/eager_overrides/cuda_dropout.h"

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "ir/philox.h"

namespace torch_lazy::device {
namespace {

constexpr lazy::Multiprocessors kGpu = {.count = 4, .threads_of_each = 2048};  // 8192 threads at once

TEST(CudaDropout, IsOfPyTorchsPhilox) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{42}, uint64_t{0xfedcba9876543210}}) {
    for (const uint64_t thread : {uint64_t{0}, uint64_t{7}, uint64_t{0x1ffffffff}}) {
      for (const uint64_t count : {uint64_t{0}, uint64_t{5}, uint64_t{0xffffffff}, uint64_t{0x300000001}}) {
        at::Philox4_32 engine(seed, thread, count);
        for (const uint32_t number : ir::Philox(count, thread, seed)) EXPECT_EQ(number, engine());
      }
    }
  }
}

int64_t WidthOf(const at::Tensor& tensor) { return LaunchOf(tensor, kGpu).width; }

TEST(CudaDropout, TakesTheWidestAccessThatFits) {
  const at::Tensor x = at::empty({64, 24});
  EXPECT_EQ(WidthOf(x), 4);
  EXPECT_EQ(WidthOf(x.to(at::kBFloat16)), 8);
  EXPECT_EQ(WidthOf(x.to(at::kHalf)), 8);
  EXPECT_EQ(WidthOf(x.to(at::kDouble)), 2);
  EXPECT_EQ(WidthOf(x.t()), 4);
  EXPECT_EQ(WidthOf(at::empty({6})), 2);
  EXPECT_EQ(WidthOf(at::empty({7})), 1);
  EXPECT_EQ(WidthOf(at::empty({12}, at::kBFloat16)), 4);
  EXPECT_EQ(WidthOf(at::empty({})), 1);
  EXPECT_EQ(WidthOf(x.flatten().slice(0, 2)), 2);  // where it begins in memory counts, too
  EXPECT_EQ(WidthOf(x.flatten().slice(0, 1, 9)), 1);
  EXPECT_EQ(WidthOf(x.slice(1, 0, 8)), 1);  // not dense
}

TEST(CudaDropout, CountsElementsInMemorysOrderWhereAccessesAreWide) {
  const at::Tensor image = at::empty({2, 8, 3, 4}, at::MemoryFormat::ChannelsLast),
                   odd = at::empty({1, 3, 3, 5}, at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(LaunchOf(image, kGpu).order, (std::vector<int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(LaunchOf(odd, kGpu).order, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(CudaDropout, TakesNumbersForEachRoundOfItsThreads) {
  const DropoutLaunch small = LaunchOf(at::empty({300}), kGpu), large = LaunchOf(at::empty({8192 * 9}), kGpu);
  EXPECT_EQ(small.threads, 512);
  EXPECT_EQ(small.numbers_per_thread, 4u);
  EXPECT_EQ(large.threads, 8192);
  EXPECT_EQ(large.numbers_per_thread, 12u);
}

// As curand_uniform makes a float of a number.
bool IsKept(at::ScalarType dtype, double p, uint32_t number) {
  const float uniform = static_cast<float>(number) * 0x1p-32F + 0x1p-33F;
  return dtype == at::kDouble ? static_cast<double>(uniform) < 1 - p : uniform < static_cast<float>(1 - p);
}

TEST(CudaDropout, KeepsWhatIsBelowItsThreshold) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const double p : {0.0, 0.1, 0.25, 0.3, 0.5, 0.9, 0.999999, 1e-9}) {
      const int64_t threshold = ThresholdOf(dtype, p);
      ASSERT_LT(threshold, int64_t{1} << 32) << p;
      EXPECT_TRUE(threshold == 0 || IsKept(dtype, p, static_cast<uint32_t>(threshold - 1))) << p;
      EXPECT_FALSE(IsKept(dtype, p, static_cast<uint32_t>(threshold))) << p;
    }
  }
}

TEST(CudaDropout, ScalesInTheTypeItComputesIn) {
  EXPECT_EQ(ScaleOf(at::kDouble, 0.3), 1.0 / (1 - 0.3));
  EXPECT_EQ(ScaleOf(at::kHalf, 0.3),
            static_cast<double>(static_cast<float>(1.0 / static_cast<double>(static_cast<float>(1 - 0.3)))));
}

}  // namespace
}  // namespace torch_lazy::device
