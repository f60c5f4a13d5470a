// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pool.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "gtest/gtest.h"

namespace torch_lazy::backends {
namespace {

TEST(Pool, MemoryIsAlignedAndWhollyUsable) {
  Pool pool;
  for (const size_t size : {0, 1, 63, 64, 65, 1000, 4096, 100000, 1 << 20, (5 << 20) + 3}) {
    void* const memory = pool.Allocate(size);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u) << size;
    std::memset(memory, 1, size);
    pool.Free(memory, size);
  }
}

TEST(Pool, GivesTheLastFreedBlockOfAClassAgain) {
  Pool pool;
  for (const size_t size : {100, 50000, 3 << 20}) {
    void* const first = pool.Allocate(size);
    void* const second = pool.Allocate(size);
    EXPECT_NE(first, second);
    pool.Free(first, size);
    pool.Free(second, size);
    EXPECT_EQ(pool.Allocate(size), second);
    EXPECT_EQ(pool.Allocate(size), first);
    pool.Free(first, size);
    pool.Free(second, size);
  }
}

TEST(Pool, CountsLiveBytes) {
  Pool pool;
  const int64_t before = base::Get(base::Counter::kBytesLive);
  void* const memory = pool.Allocate(1000);
  const int64_t during = base::Get(base::Counter::kBytesLive) - before;
  EXPECT_GE(during, 1000);
  EXPECT_LE(during, 1250);  // classes waste a fifth at most
  pool.Free(memory, 1000);
  EXPECT_EQ(base::Get(base::Counter::kBytesLive), before);
}

TEST(Pool, DoesNotKeepMoreThanWasEverNeededAtOnce) {
  Pool pool;
  constexpr size_t kBlock = size_t{32} << 20;
  for (size_t size = kBlock; size < 40 * kBlock; size += kBlock) pool.Free(pool.Allocate(size), size);
  EXPECT_LE(pool.idle_bytes(), size_t{40} * kBlock * 5 / 4);
}

TEST(Pool, DropsThePagesOfSmallBlocksAndGivesTheBlocksAgain) {
  Pool pool;
  constexpr size_t kBlock = size_t{1} << 20;
  constexpr int kCount = 300;
  std::vector<void*> blocks;
  for (int k = 0; k < kCount; ++k) {
    blocks.push_back(pool.Allocate(kBlock));
    std::memset(blocks.back(), 1, kBlock);
  }
  for (void* block : blocks) pool.Free(block, kBlock);
  // Half of the peak is in use again, under another size: less of the rest is kept.
  std::vector<void*> others;
  for (int k = 0; k < kCount; ++k) others.push_back(pool.Allocate(kBlock / 2 + 1));
  for (void* other : others) pool.Free(other, kBlock / 2 + 1);
  EXPECT_LE(pool.idle_bytes(), kCount * kBlock * 5 / 4);
  std::set<void*> again;
  for (int k = 0; k < kCount; ++k) again.insert(pool.Allocate(kBlock));
  EXPECT_EQ(again, std::set<void*>(blocks.begin(), blocks.end()));
  for (void* block : again) {
    std::memset(block, 2, kBlock);
    pool.Free(block, kBlock);
  }
}

// Whether the system was asked to put the memory on huge pages.
bool WantsHugePages(const void* memory) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto place = reinterpret_cast<uintptr_t>(memory);
      inside = begin <= place && place < end;
    } else if (inside && line.rfind("VmFlags:", 0) == 0) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

TEST(Pool, HasHugePagesOnceItSettles) {
  if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) GTEST_SKIP() << "a system without them";
  Pool pool;
  constexpr size_t kSmall = 4096, kLarge = 3 * kHugePage;
  auto* const small = static_cast<char*>(pool.Allocate(kSmall));
  auto* const large = static_cast<char*>(pool.Allocate(kLarge));
  void* const dropped = pool.Allocate(2 * kHugePage);
  std::memset(large, 7, kLarge);
  EXPECT_FALSE(WantsHugePages(small));
  EXPECT_FALSE(WantsHugePages(large));
  pool.Settle();
  void* const later = pool.Allocate(4 * kHugePage);
  for (const void* block : {static_cast<void*>(small), static_cast<void*>(large), later}) {
    EXPECT_TRUE(WantsHugePages(block));
  }
  for (size_t i = 0; i < kLarge; i += 4096) ASSERT_EQ(large[i], 7);
  pool.Free(later, 4 * kHugePage);
  pool.Free(dropped, 2 * kHugePage);
  pool.Free(large, kLarge);
  pool.Free(small, kSmall);
}

TEST(Slabs, BlocksDoNotOverlapAndOutliveASlab) {
  Slabs slabs;
  constexpr size_t kBlock = (size_t{3} << 19) + 64;  // does not divide a slab
  std::vector<char*> blocks;
  for (int k = 0; k < 50; ++k) {
    blocks.push_back(static_cast<char*>(slabs.Carve(kBlock)));
    std::memset(blocks.back(), k, kBlock);
  }
  for (int k = 0; k < 50; ++k) {
    EXPECT_EQ(blocks[k][0], k);
    EXPECT_EQ(blocks[k][kBlock - 1], k);
  }
}

TEST(Slabs, DropsWholePagesOnly) {
  Slabs slabs;
  auto* const small = static_cast<char*>(slabs.Carve(64));
  EXPECT_FALSE(Slabs::DropPages(small, 64));
  auto* const large = static_cast<char*>(slabs.Carve(1 << 20));
  std::memset(small, 7, 64);
  std::memset(large, 7, 1 << 20);
  EXPECT_TRUE(Slabs::DropPages(large, 1 << 20));
  EXPECT_EQ(large[1 << 19], 0);  // a fresh page
  EXPECT_EQ(small[63], 7);
}

TEST(Pool, ServesThreads) {
  Pool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int k = 0; k < 2000; ++k) {
        const size_t size = 64 * (k % 50 + 1);
        auto* const memory = static_cast<unsigned char*>(pool.Allocate(size));
        std::memset(memory, t, size);
        for (size_t i = 0; i < size; ++i) ASSERT_EQ(memory[i], t);
        pool.Free(memory, size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace torch_lazy::backends
