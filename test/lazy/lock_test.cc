// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <thread>
#include <vector>

namespace torch_lazy::lazy {
namespace {

void InThreads(int count, const std::function<void()>& run) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
}

TEST(RecursiveLock, OneThreadIsWithin) {
  constexpr int kThreads = 8, kTimes = 20000;
  RecursiveLock lock;
  int count = 0;
  InThreads(kThreads, [&] {
    for (int k = 0; k < kTimes; ++k) {
      const std::lock_guard<RecursiveLock> outer(lock), inner(lock);
      ++count;
    }
  });
  EXPECT_EQ(count, kThreads * kTimes);
}

TEST(RecursiveLock, StaysWithItsThreadUntilTheOuterScopeEnds) {
  RecursiveLock lock;
  std::atomic<bool> is_taken{false};
  lock.lock();
  lock.lock();
  std::thread other([&] {
    const std::lock_guard<RecursiveLock> held(lock);
    is_taken = true;
  });
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_taken);
  lock.unlock();
  other.join();
  EXPECT_TRUE(is_taken);
}

// For so long that those who wait sleep.
TEST(RecursiveLock, SleepersAreWoken) {
  RecursiveLock lock;
  int count = 0;
  InThreads(4, [&] {
    for (int k = 0; k < 5; ++k) {
      const std::lock_guard<RecursiveLock> held(lock);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++count;
    }
  });
  EXPECT_EQ(count, 20);
}

TEST(RecursiveLock, IsLetGoWhileSomethingIsWaitedFor) {
  RecursiveLock lock;
  std::condition_variable_any changed;
  bool is_there = false;
  std::thread waiting([&] {
    std::unique_lock<RecursiveLock> held(lock);
    changed.wait(held, [&] { return is_there; });
  });
  {
    const std::lock_guard<RecursiveLock> held(lock);
    is_there = true;
  }
  changed.notify_all();
  waiting.join();
}

TEST(DeviceLock, ThreadsHoldItAsOwnAtOnce) {
  constexpr int kThreads = 4;
  std::barrier all_have_asked(kThreads), all_are_within(kThreads);
  InThreads(kThreads, [&] {
    { const RecordingLock own(/*alone=*/false); }
    all_have_asked.arrive_and_wait();
    const RecordingLock own(/*alone=*/false);
    all_are_within.arrive_and_wait();
  });
}

// More threads than there are places, too.
TEST(DeviceLock, NobodyIsWithinBesideWhoHoldsItAlone) {
  for (const int threads : {1, 7, 160}) {
    constexpr int kTimes = 4000;
    struct alignas(64) Counts {
      int first = 0, second = 0;
    };
    std::vector<Counts> counts(static_cast<size_t>(threads));
    std::atomic<int> numbers{0};
    int looks = 0;
    InThreads(threads, [&] {
      Counts& mine = counts[static_cast<size_t>(numbers++)];
      for (int k = 0; k < kTimes / threads; ++k) {
        {
          const RecordingLock own(/*alone=*/false);
          ++mine.first;
          ++mine.second;
        }
        if (k % 16 != 0) continue;
        const RecordingLock alone(/*alone=*/true);
        ++looks;
        for (const Counts& each : counts) EXPECT_EQ(each.first, each.second);
      }
    });
    EXPECT_EQ(looks, threads * ((kTimes / threads + 15) / 16));
    for (const Counts& each : counts) EXPECT_EQ(each.first, kTimes / threads);
  }
}

TEST(DeviceLock, IsTakenInEitherWayWithinTheOther) {
  constexpr int kThreads = 4, kTimes = 2000;
  int count = 0;
  InThreads(kThreads, [&] {
    for (int k = 0; k < kTimes; ++k) {
      {
        const RecordingLock own(/*alone=*/false), again(/*alone=*/false);
        const Locked alone(DeviceLock());
        ++count;
      }
      const Locked alone(DeviceLock());
      const RecordingLock own(/*alone=*/false);
      ++count;
    }
  });
  EXPECT_EQ(count, 2 * kThreads * kTimes);
}

}  // namespace
}  // namespace torch_lazy::lazy
