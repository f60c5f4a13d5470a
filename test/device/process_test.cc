// SPDX-License-Identifier: Apache-2.0
// The end of a process, and its children.
#include <sys/wait.h>
#include <unistd.h>

#include <ATen/ops/empty.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(ProcessDeathTest, ExitsWithWorkPending) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static at::Tensor* const leaked = new at::Tensor(ToLazy(Iota({64})).mul(2));
        static const at::Tensor destroyed_late = leaked->add(1);
        exit(0);
      },
      testing::ExitedWithCode(0), "");
}

// The exit status of a forked child that runs `body`.
template <class Body>
int StatusOfChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, ChildGetsAnErrorAndTheParentGoesOn) {
  const at::Tensor x = ToLazy(Iota({4})).add(1);
  const auto child = [&x] {
    try {
      x.mul(2);
    } catch (const c10::Error& error) {
      const bool named = std::string(error.what()).find("forked subprocess") != std::string::npos;
      return named && CallOp<bool>("is_in_bad_fork") ? 3 : 1;
    }
    return 2;
  };
  EXPECT_EQ(StatusOfChild(child), 3);
  EXPECT_EQ(StatusOfChild([&x] { return x.defined() ? 4 : 0; }), 4);
  EXPECT_FALSE(CallOp<bool>("is_in_bad_fork"));
  ExpectSame(x, Iota({4}).add(1));
}

}  // namespace
}  // namespace torch_lazy::device
