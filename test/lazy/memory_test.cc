// SPDX-License-Identifier: Apache-2.0
// CPU tensors made inside and outside of a PooledResults scope.
#include "lazy/eager/memory.h"

#include <thread>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include "base/metrics.h"

namespace torch_lazy::lazy {
namespace {

constexpr int64_t kBytes = int64_t{1} << 20;

int64_t LiveBytes() { return base::Get(base::Counter::kBytesLive); }
at::Tensor NewTensor(int64_t bytes = kBytes) { return at::empty({bytes}, at::kByte); }

class PooledResultsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { InstallPooledResults(); }
  const int64_t before_ = LiveBytes();
};

TEST_F(PooledResultsTest, OutsideOfAScopeThePoolIsLeftAlone) {
  const at::Tensor tensor = NewTensor();
  EXPECT_EQ(LiveBytes(), before_);
}

TEST_F(PooledResultsTest, InsideMemoryIsThePoolsAndComesBack) {
  at::Tensor tensor;
  void* memory = nullptr;
  {
    PooledResults pooled;
    tensor = NewTensor();
    memory = tensor.mutable_data_ptr();
    EXPECT_EQ(LiveBytes(), before_ + kBytes);
  }
  tensor = at::Tensor();  // outside
  EXPECT_EQ(LiveBytes(), before_);
  PooledResults pooled;
  EXPECT_EQ(NewTensor().mutable_data_ptr(), memory);
}

TEST_F(PooledResultsTest, SmallTensorsAreNot) {
  PooledResults pooled;
  const at::Tensor tensor = NewTensor(64);
  EXPECT_EQ(LiveBytes(), before_);
}

TEST_F(PooledResultsTest, SmallMemoryComesBackToTheThreadThatFreesIt) {
  void* memory = nullptr;
  {
    PooledResults pooled;
    memory = NewTensor(65).mutable_data_ptr();
    EXPECT_EQ(NewTensor(128).mutable_data_ptr(), memory);
    EXPECT_NE(NewTensor(64).mutable_data_ptr(), memory);
    std::thread([memory] {
      PooledResults of_another;
      EXPECT_NE(NewTensor(128).mutable_data_ptr(), memory);
    }).join();
  }
  EXPECT_NE(NewTensor(128).mutable_data_ptr(), memory);
  PooledResults pooled;
  at::Tensor tensor = NewTensor(100);
  EXPECT_EQ(tensor.mutable_data_ptr(), memory);
  EXPECT_TRUE(IsPooled(tensor.storage()));
  std::thread([&tensor] { tensor = at::Tensor(); }).join();
  EXPECT_EQ(NewTensor(0).mutable_data_ptr(), nullptr);
}

// More are freed than a thread keeps.
TEST_F(PooledResultsTest, ManySmallTensors) {
  PooledResults pooled;
  std::vector<at::Tensor> tensors;
  for (int64_t bytes = 1; bytes < 4096; bytes += 50) tensors.push_back(NewTensor(bytes).fill_(7));
  for (const at::Tensor& tensor : tensors) EXPECT_TRUE(tensor.eq(7).all().item<bool>());
}

TEST_F(PooledResultsTest, SmallRawMemoryIsMallocs) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  void* inside = nullptr;
  {
    PooledResults pooled;
    inside = allocator.raw_allocate(64);
  }
  allocator.raw_deallocate(inside);
}

// raw_deallocate sees only an address, whichever side of the scope it came from.
TEST_F(PooledResultsTest, RawMemoryGoesBackWhereItCameFrom) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  void* const outside = allocator.raw_allocate(kBytes);
  void* inside = nullptr;
  {
    PooledResults pooled;
    inside = allocator.raw_allocate(kBytes);
    EXPECT_EQ(LiveBytes(), before_ + kBytes);
    allocator.raw_deallocate(outside);
    EXPECT_EQ(LiveBytes(), before_ + kBytes);
  }
  allocator.raw_deallocate(inside);
  EXPECT_EQ(LiveBytes(), before_);
}

TEST_F(PooledResultsTest, AResultMayBeResizedLater) {
  at::Tensor tensor;
  {
    PooledResults pooled;
    tensor = NewTensor();
    tensor.fill_(7);
  }
  tensor.resize_({2 * kBytes});
  EXPECT_EQ(tensor[kBytes - 1].item<int>(), 7);
  EXPECT_EQ(LiveBytes(), before_);
}

}  // namespace
}  // namespace torch_lazy::lazy
