// SPDX-License-Identifier: Apache-2.0
// CPU tensors made inside and outside of a PooledResults scope.
#include "lazy/eager/memory.h"

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
