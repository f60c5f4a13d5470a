// SPDX-License-Identifier: Apache-2.0
#include "base/at_work.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/pace.h"
#include "base/wait.h"
#include "gtest/gtest.h"

namespace torch_lazy::base {
namespace {

using testing::ExitedWithCode;

// Each ends a program of its own: exit statuses are what is seen.
class AtWorkDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

std::atomic<bool> begun{false}, ended{false}, destroyed{false};

void AwaitBegin() {
  while (!begun) std::this_thread::yield();
}

// Data of a library: its end is to come after the work's.
struct Data {
  ~Data() {
    if (!ended) _exit(7);
    destroyed = true;
  }
};

template <typename Work>
void StartThread(Work work) {
  std::thread(std::move(work)).detach();
  AwaitBegin();
}

TEST_F(AtWorkDeathTest, ExitWaitsForWhatMustEnd) {
  EXPECT_EXIT(
      {
        WatchForExit();
        static Data data;
        static_cast<void>(data);
        StartThread([] {
          const AtWork work;
          const MustEnd driver;
          begun = true;
          usleep(300000);
          ended = true;
        });
        exit(3);
      },
      ExitedWithCode(3), "");
}

TEST_F(AtWorkDeathTest, ExitOfAnotherThreadWaits) {
  EXPECT_EXIT(
      {
        static Data data;
        static_cast<void>(data);
        std::thread([] {
          WatchForExit();  // after the data, which are destroyed later therefore
          StartThread([] {
            const AtWork work;
            const MustEnd driver;
            begun = true;
            usleep(300000);
            ended = true;
          });
          exit(3);
        }).join();
      },
      ExitedWithCode(3), "");
}

TEST_F(AtWorkDeathTest, WorkThatGivesWayIsLeft) {
  EXPECT_EXIT(
      {
        WatchForExit();
        StartThread([] {
          const AtWork work;
          begun = true;
          while (!IsExiting()) std::this_thread::yield();
          GiveWay();
          _exit(8);
        });
        exit(3);
      },
      ExitedWithCode(3), "");
}

TEST_F(AtWorkDeathTest, WorkForEverDoesNotHoldUp) {
  EXPECT_EXIT(
      {
        WatchForExit();
        StartThread([] {
          const AtWork work;
          begun = true;
          while (true) std::this_thread::yield();
        });
        exit(3);
      },
      ExitedWithCode(3), "");
}

TEST_F(AtWorkDeathTest, SeveralFunctionsAreCalled) {
  static int called = 0;
  EXPECT_EXIT(
      {
        atexit([] { _exit(called); });
        WatchForExit();
        CallAtExit([] { called |= 4; });
        CallAtExit([] { called |= 8; });
        exit(3);
      },
      ExitedWithCode(12), "");
}

// 64 patiences are ten seconds.
TEST_F(AtWorkDeathTest, ManyWatchesWaitOnce) {
  EXPECT_EXIT(
      {
        for (int k = 0; k < 64; ++k) WatchForExit();
        StartThread([] {
          const AtWork work;
          begun = true;
          while (true) std::this_thread::yield();
        });
        alarm(5);
        exit(3);
      },
      ExitedWithCode(3), "");
}

TEST_F(AtWorkDeathTest, NothingBeginsAfterwards) {
  EXPECT_EXIT(
      {
        WatchForExit();
        StartThread([] {
          begun = true;
          while (!IsExiting()) std::this_thread::yield();
          const AtWork work;
          _exit(8);
        });
        atexit([] { usleep(20000); });
        exit(3);
      },
      ExitedWithCode(3), "");
}

TEST_F(AtWorkDeathTest, TheProgramsOwnThreadsGoOn) {
  EXPECT_EXIT(
      {
        atexit([] {
          const MustEnd driver;
          _exit(MustStopWaiting() ? 4 : 5);
        });
        WatchForExit();
        exit(3);
      },
      ExitedWithCode(4), "");
}

TEST_F(AtWorkDeathTest, AForkHasNoneOfThem) {
  EXPECT_EXIT(
      {
        WatchForExit();
        StartThread([] {
          const AtWork work;
          const MustEnd driver;
          begun = true;
          while (true) pause();
        });
        if (fork() == 0) exit(0);
        _exit(3);
      },
      ExitedWithCode(3), "");
}

TEST(Interruptible, IsAskedUntilItSaysYes) {
  static int asked = 0;
  EXPECT_FALSE(MustStopWaiting());
  const Interruptible outer([] { return ++asked == 2; });
  EXPECT_FALSE(MustStopWaiting());
  {
    const Interruptible inner([] { return false; });
    EXPECT_FALSE(MustStopWaiting());
  }
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(MustStopWaiting());
  EXPECT_TRUE(MustStopWaiting());
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace torch_lazy::base
