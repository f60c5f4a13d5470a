// SPDX-License-Identifier: Apache-2.0
#include "backends/blocks/block_launches.h"

#include <deque>
#include <vector>

#include "gtest/gtest.h"

namespace torch_lazy::backends {
namespace {

// Instances of one kernel, with one buffer and one extent each.
class BlockLaunchesTest : public testing::Test {
 protected:
  BlockLaunchesTest() {
    kernel_.name = "k";
    kernel_.threads = 32;
    kernel_.iterations_per_block = 4;
  }

  void Add(int64_t extent, size_t misaligned_by = 0) {
    buffers_.push_back(memory_ + misaligned_by);
    extents_.push_back(extent);
    BoundInstance& instance = instances_.emplace_back();
    instance.function = &kernel_;
    instance.buffers = absl::MakeConstSpan(&buffers_.back(), 1);
    instance.extents = absl::MakeConstSpan(&extents_.back(), 1);
    instance.iterations = iterations_;
  }

  int64_t iterations_ = 64 * 4;
  BlockKernel kernel_;
  alignas(16) char memory_[64];
  std::deque<void*> buffers_;
  std::deque<int64_t> extents_;
  std::vector<BoundInstance> instances_;
};

TEST_F(BlockLaunchesTest, InstancesOfAKernelAreOne) {
  Add(64), Add(64), Add(63);
  const BlockLaunches launches(instances_);
  ASSERT_EQ(launches.launches().size(), 1);
  EXPECT_TRUE(launches.launches()[0].is_many());
  EXPECT_EQ(launches.launches()[0].blocks, 3 * 64);
}

TEST_F(BlockLaunchesTest, AFewGoByValue) {
  kernel_.entries.few = true;
  Add(64);
  iterations_ = 10 * 4;
  Add(64);
  const BlockLaunches launches(instances_);
  ASSERT_EQ(launches.launches().size(), 1);
  const BlockLaunch& few = launches.launches()[0];
  EXPECT_EQ(few.entry, BlockLaunch::Entry::kFew);
  EXPECT_EQ(few.blocks, 64);  // the larger one's
  EXPECT_EQ(few.grid_y(), 2);
  EXPECT_FALSE(launches.has_tables());
  EXPECT_EQ(launches.device_bytes(), 0);
  EXPECT_EQ(launches.size_bytes(), 4 * 4 * sizeof(int64_t));  // room for four, whose arguments are four words
}

TEST_F(BlockLaunchesTest, AFewOfUnlikeSizesDoNot) {
  kernel_.entries.few = true;
  Add(64);
  iterations_ = 2000 * 4;
  Add(64);
  const BlockLaunches launches(instances_);
  ASSERT_EQ(launches.launches().size(), 1);
  EXPECT_TRUE(launches.launches()[0].is_many());
  EXPECT_EQ(launches.launches()[0].blocks, 64 + 2000);
}

TEST_F(BlockLaunchesTest, OneAndManyDoNot) {
  kernel_.entries.few = true;
  Add(64);
  EXPECT_EQ(BlockLaunches(instances_).launches()[0].entry, BlockLaunch::Entry::kOne);
  for (int k = 0; k < 4; ++k) Add(64);
  EXPECT_EQ(BlockLaunches(instances_).launches()[0].entry, BlockLaunch::Entry::kMany);
}

// Some of a launch's instances may have nothing to do.
TEST_F(BlockLaunchesTest, OneTakesWhatEntryThereIs) {
  Add(64);
  kernel_.entries = {.one = false, .few = true, .many = true};
  EXPECT_EQ(BlockLaunches(instances_).launches()[0].entry, BlockLaunch::Entry::kFew);
  kernel_.entries.few = false;
  EXPECT_EQ(BlockLaunches(instances_).launches()[0].entry, BlockLaunch::Entry::kMany);
}

TEST_F(BlockLaunchesTest, AFewWithoutAnEntryAreMany) {
  kernel_.entries = {.one = false, .few = false, .many = true};
  Add(64), Add(64);
  ASSERT_EQ(BlockLaunches(instances_).launches().size(), 1);
  EXPECT_EQ(BlockLaunches(instances_).launches()[0].entry, BlockLaunch::Entry::kMany);
}

TEST_F(BlockLaunchesTest, ThoseThatNoEntryTakesTogetherGoOneByOne) {
  Add(64);
  iterations_ = 2000 * 4;
  Add(64);
  for (const bool one : {true, false}) {  // by an entry that would take a few of like sizes
    kernel_.entries = {.one = one, .few = !one, .many = false};
    const BlockLaunches launches(instances_);
    ASSERT_EQ(launches.launches().size(), 2);
    for (const BlockLaunch& launch : launches.launches()) {
      EXPECT_EQ(launch.entry, one ? BlockLaunch::Entry::kOne : BlockLaunch::Entry::kFew);
      EXPECT_EQ(launch.instances.size(), 1);
    }
    EXPECT_EQ(launches.launches()[0].blocks, 64);
    EXPECT_EQ(launches.launches()[1].blocks, 2000);
    EXPECT_EQ(launches.launches()[1].instances[0], &instances_[1]);
    EXPECT_EQ(launches.size_bytes(), (one ? 2 : 2 * 4) * 4 * sizeof(int64_t));
  }
}

TEST_F(BlockLaunchesTest, ThoseOfTheExactLengthAreOne) {
  kernel_.exact_rows = {0, 64};
  Add(63), Add(64), Add(64), Add(65), Add(64, /*misaligned_by=*/8);
  const BlockLaunches launches(instances_);
  ASSERT_EQ(launches.launches().size(), 2);
  const BlockLaunch &others = launches.launches()[0], &exact = launches.launches()[1];
  EXPECT_FALSE(others.is_exact());
  EXPECT_EQ(others.instances.size(), 3);
  EXPECT_EQ(others.blocks, 3 * 64);
  EXPECT_TRUE(exact.is_exact());
  EXPECT_FALSE(exact.is_many());
  EXPECT_EQ(exact.instances.size(), 2);
  EXPECT_EQ(exact.blocks, 64);
  EXPECT_EQ(exact.grid_y(), 2);
}

TEST_F(BlockLaunchesTest, ThoseOfTheExactLengthHaveAsManyBlocks) {
  kernel_.exact_rows = {0, 64};
  Add(64);
  iterations_ = 65 * 4;
  Add(64), Add(64);
  const BlockLaunches launches(instances_);
  ASSERT_EQ(launches.launches().size(), 2);
  EXPECT_EQ(launches.launches()[0].instances.size(), 1);
  EXPECT_EQ(launches.launches()[1].instances.size(), 2);
  EXPECT_EQ(launches.launches()[1].blocks, 65);
}

TEST_F(BlockLaunchesTest, ThoseOfTheExactLengthFitByValue) {
  kernel_.exact_rows = {0, 64};
  for (int k = 0; k < 17; ++k) Add(64);
  const BlockLaunches launches(instances_);
  ASSERT_EQ(launches.launches().size(), 2);
  EXPECT_EQ(launches.launches()[0].grid_y(), 16);
  EXPECT_EQ(launches.launches()[1].grid_y(), 1);
  EXPECT_EQ(launches.device_bytes(), 0);
  EXPECT_EQ(launches.size_bytes(), 2 * 16 * 4 * sizeof(int64_t));  // room for all, whose arguments are four words
}

TEST_F(BlockLaunchesTest, FewRowsShareALaunch) {
  kernel_.exact_rows = {0, 64};
  iterations_ = 63 * 4;
  Add(64), Add(64);
  const BlockLaunches launches(instances_);
  ASSERT_EQ(launches.launches().size(), 1);
  EXPECT_FALSE(launches.launches()[0].is_exact());
}

}  // namespace
}  // namespace torch_lazy::backends
