// SPDX-License-Identifier: Apache-2.0
// What waits for traces that run ahead, where CUDA graphs are emulated: LAZY_BACKEND is stand_in here.
#include "lazy/cuts/run_ahead.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/memory.h"
#include "lazy/host/run_thread.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {
namespace {

class RunsAhead : public testing::Test {
 protected:
  void Use() { Sync(static_cast<LazyStorageImpl*>(storage_.unsafeGetStorageImpl()), "test"); }

  const c10::Storage storage_ = MakeStorage(NewContent(8));
};

TEST_F(RunsAhead, AContentIsUsedWhenWhatTheThreadHasPostedIsDone) {
  std::atomic<bool> done{false};
  ASSERT_TRUE(RunThread::Get().Acquire());
  RunThread::Get().Post(
      [&](RunThread::Where) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        done = true;
        return true;
      },
      nullptr);
  Use();
  EXPECT_TRUE(done);
}

TEST_F(RunsAhead, AnotherThreadsIsNotWaitedFor) {
  std::latch posted(1), used(1);
  std::atomic<bool> done{false};
  std::thread other([&] {
    EXPECT_TRUE(RunThread::Get().Acquire());
    RunThread::Get().Post(
        [&](RunThread::Where) {
          used.wait();
          done = true;
          return true;
        },
        nullptr);
    posted.count_down();
    RunThread::Get().Drain();
  });
  posted.wait();
  Use();
  EXPECT_FALSE(done);
  used.count_down();
  other.join();
  EXPECT_TRUE(done);
}

TEST_F(RunsAhead, TheThreadWorksForWhoHasPosted) {
  std::thread::id id;
  ASSERT_TRUE(RunThread::Get().Acquire());
  RunThread::Get().Post(
      [&](RunThread::Where) {
        id = ProgramThread();
        return true;
      },
      nullptr);
  RunThread::Get().Wait();
  EXPECT_EQ(id, std::this_thread::get_id());
  EXPECT_EQ(ProgramThread(), std::this_thread::get_id());
}

// What sends a run back, and what that leaves to the program.
class SendsBack : public RunsAhead {
 protected:
  void Post(bool fails = false) {
    ASSERT_TRUE(RunThread::Get().Acquire());
    RunThread::Get().Post(
        [this, fails](RunThread::Where where) {
          ++asked_;
          if (where == RunThread::Where::kHere) return false;
          runner_ = std::this_thread::get_id();
          if (fails) throw std::runtime_error("it failed");
          return true;
        },
        nullptr);
    while (asked_ == 0) std::this_thread::yield();  // else the program would take back what was not begun
  }

  std::atomic<int> asked_{0};
  std::atomic<std::thread::id> runner_{};
};

TEST_F(SendsBack, WhoUsesAContentRunsIt) {
  Post();
  Use();
  EXPECT_EQ(runner_.load(), std::this_thread::get_id());
  EXPECT_EQ(asked_, 2);
}

TEST_F(SendsBack, WhoPostsTheNextRunsIt) {
  Post();
  ASSERT_TRUE(RunThread::Get().Acquire());
  EXPECT_EQ(runner_.load(), std::this_thread::get_id());
  RunThread::Get().Post([](RunThread::Where) { return true; }, nullptr);
  RunThread::Get().Wait();
  EXPECT_EQ(asked_, 2);
}

TEST_F(SendsBack, AnotherThreadThatWaitsRunsIt) {
  Post();
  std::thread::id other;
  std::thread([&] {
    other = std::this_thread::get_id();
    RunThread::Get().Wait();
  }).join();
  EXPECT_EQ(runner_.load(), other);
}

TEST_F(SendsBack, WhatItRaisesIsRaisedByAWait) {
  Post(/*fails=*/true);
  EXPECT_THROW(RunThread::Get().Wait(), std::runtime_error);
  RunThread::Get().Wait();
}

// Busy threads on all processors, and a library's thread that the system gives what they leave.
class Starved {
 public:
  Starved() {
    std::atomic<pid_t> thread{0};
    EXPECT_TRUE(RunThread::Get().Acquire());
    RunThread::Get().Post(
        [&](RunThread::Where) {
          thread = gettid();
          return true;
        },
        nullptr);
    while (thread == 0) std::this_thread::yield();
    RunThread::Get().Wait();
    const sched_param none{};
    EXPECT_EQ(sched_setscheduler(thread, SCHED_IDLE, &none), 0);
    thread_ = thread;
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned k = 0; k < 2 * processors; ++k) {
      busy_.emplace_back([this] {
        while (!ends_) {
        }
      });
    }
  }
  ~Starved() {
    ends_ = true;
    for (std::thread& thread : busy_) thread.join();
    const sched_param none{};
    sched_setscheduler(thread_, SCHED_OTHER, &none);
  }

 private:
  pid_t thread_ = 0;
  std::atomic<bool> ends_{false};
  std::vector<std::thread> busy_;
};

TEST_F(RunsAhead, WhatTheThreadHasNotBegunIsTakenBack) {
  const Starved starved;
  const std::thread::id here = std::this_thread::get_id();
  int taken_back = 0, ran = 0;
  for (int k = 0; k < 20; ++k) {
    ASSERT_TRUE(RunThread::Get().Acquire());
    std::thread::id runner;
    const int before = taken_back;
    RunThread::Get().Post(
        [&](RunThread::Where where) {
          ++ran;
          runner = std::this_thread::get_id();
          taken_back += where == RunThread::Where::kInProgram;
          return true;
        },
        nullptr);
    Use();
    EXPECT_EQ(ran, k + 1);
    EXPECT_EQ(runner == here, taken_back > before);
  }
  EXPECT_GT(taken_back, 0);
}

}  // namespace
}  // namespace torch_lazy::lazy
