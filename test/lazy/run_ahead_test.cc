// SPDX-License-Identifier: Apache-2.0
// What waits for traces that run ahead, where CUDA graphs are emulated: LAZY_BACKEND is stand_in here.
#include "lazy/cuts/run_ahead.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

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
      [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        done = true;
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
        [&] {
          used.wait();
          done = true;
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
  RunThread::Get().Post([&] { id = ProgramThread(); }, nullptr);
  RunThread::Get().Wait();
  EXPECT_EQ(id, std::this_thread::get_id());
  EXPECT_EQ(ProgramThread(), std::this_thread::get_id());
}

}  // namespace
}  // namespace torch_lazy::lazy
