// SPDX-License-Identifier: Apache-2.0
// Eight threads that record at once. They share the known traces, learned shapes, plans, kernels, the pool, and the
// tables that metrics and explain read. `make tsan` runs this under ThreadSanitizer.
#include <ATen/Parallel.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

constexpr int kThreads = 8;
constexpr int kSteps = 24;

template <typename Run>
void InThreads(const Run& run) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&run, t] { run(t); });
  for (std::thread& thread : threads) thread.join();
}

// Steps with updates in place, views, and temporaries, of a size that half of the threads have. Exact in float32.
at::Tensor Train(const at::Device& device, int thread, int read_every) {
  const int64_t rows = 4 + thread % 2;
  const at::Tensor x = Iota({rows, 6}).to(device);
  at::Tensor w = at::ones({6, 3}).to(device), total = at::zeros({3}).to(device);
  double seen = 0;
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor y = x.matmul(w).relu();
    total.add_(y.sum(0)).fmod_(64);
    w.add_(total.mul(0.25).floor()).fmod_(8);
    w.t()[0].sub_(1);
    if (read_every > 0 && step % read_every == 0) seen += w.sum().item<double>();
  }
  return w.cpu().add(seen);
}

// Loops of the same calls that wait every step, every third, every fifth, and never.
void TrainInThreads() {
  constexpr int kReadEvery[] = {1, 3, 5, 0};
  std::vector<at::Tensor> lazy(kThreads);
  InThreads([&](int t) { lazy[t] = Train(Lazy(), t, kReadEvery[t / 2]); });
  for (int t = 0; t < kThreads; ++t) {
    const at::Tensor cpu = Train(at::kCPU, t, kReadEvery[t / 2]);
    EXPECT_TRUE(lazy[t].equal(cpu)) << "thread " << t << "\n" << lazy[t] << "\n!=\n" << cpu;
  }
}

TEST(Threads, TrainAtOnceWhileKernelsCompile) {
  SetOption("compile", "async");
  for (int round = 0; round < 4; ++round) TrainInThreads();
}

TEST(Threads, TrainAtOnceAndWaitForKernels) {
  SetOption("compile", "sync");
  for (int round = 0; round < 2; ++round) TrainInThreads();
  SetOption("compile", "async");
}

TEST(Threads, ForgetTracesThatOthersAreIn) {
  SetOption("max_known_ops", "40");
  TrainInThreads();
  SetOption("max_known_ops", "524288");
}

// What one thread has recorded is read, and overwritten, by another.
TEST(Threads, HandTensorsOn) {
  std::vector<at::Tensor> tensors;
  for (int t = 0; t < kThreads; ++t) tensors.push_back(ToLazy(at::zeros({5})));
  std::barrier step(kThreads);
  InThreads([&](int t) {
    for (int k = 0; k < kSteps; ++k) {
      tensors[(t + k) % kThreads].add_(t + 1);
      step.arrive_and_wait();
      const at::Tensor sum = tensors[0].add(tensors[kThreads - 1]);  // all read the same
      step.arrive_and_wait();
      EXPECT_TRUE(k % 5 != 4 || sum.sum().item<float>() == sum[0].item<float>() * 5);
    }
  });
  for (const at::Tensor& tensor : tensors) ExpectSame(tensor, at::zeros({5}).add(kSteps / kThreads * 36));
}

int64_t ImmediateCuts() {
  const std::string metrics = CallOp<std::string>("metrics");
  const std::string name = "\"immediate\": ";
  const size_t found = metrics.find(name, metrics.find("\"cuts\": "));
  return found == std::string::npos ? 0 : std::stoll(metrics.substr(found + name.size()));
}

// Seven threads write a row each into zeros of the eighth, at the same time: its trace does not run for that.
TEST(Threads, WriteIntoWhatAnotherHasOnlyFilled) {
  constexpr int kFirst = 40;  // rounds until each thread is known to hand its writes on
  at::Tensor table;
  int64_t cuts = 0;
  std::barrier step(kThreads);
  InThreads([&](int t) {
    for (int k = 0; k < 4 * kFirst; ++k) {
      if (t == 0) {
        if (k == kFirst) cuts = ImmediateCuts();
        table = at::zeros({kThreads, 3}, at::Device("lazy"));
      }
      step.arrive_and_wait();
      if (t != 0) table[t].fill_(t + k);
      step.arrive_and_wait();
      EXPECT_TRUE(t != 0 || table.sum().item<float>() == 3 * (28 + 7 * k));
    }
  });
  EXPECT_EQ(ImmediateCuts(), cuts);
}

// What another thread has made, and then filled in part, is not only filled.
TEST(Threads, ReadWhatAnotherHasMadeAndFilledInPart) {
  for (int round = 0; round < 3; ++round) {  // the first learns shapes
    at::Tensor table;
    std::thread([&] {
      table = at::eye(4, at::Device("lazy"));
      table[0].fill_(2);
    }).join();
    at::Tensor expected = at::eye(4);
    expected[0].fill_(2);
    ExpectSame(table, expected);
  }
}

TEST(Threads, ObserveAndSyncWhileOthersRecord) {
  InThreads([&](int t) {
    for (int k = 0; k < kSteps; ++k) {
      if (t == 0) {
        EXPECT_FALSE(CallOp<std::string>("metrics").empty());
      } else if (t == 1) {
        CallOp<std::string>("explain");
      } else if (t == 2) {
        CallOp<void>("sync");
      } else {
        const at::Tensor x = ToLazy(at::ones({k % 3 + 1}));
        EXPECT_EQ(x.add(x).mul(3).sum().item<int>(), 6 * (k % 3 + 1));
      }
    }
  });
}

int NumThreads() {
  int count = 0;
  for ([[maybe_unused]] const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// How many threads are left after `run`, in a thread of its own, that were not there before.
int NumThreadsMadeBy(const std::function<void()>& run) {
  int made = 0;
  std::thread([&] {
    const int before = NumThreads();
    run();
    for (int k = 0; k < 100; ++k) {  // who has ended is counted for a moment
      made = NumThreads() - before;
      if (made <= 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }).join();
  return made;
}

// A second team in a process makes every region of it dearer.
TEST(Threads, WhoRunsCallsOfAnotherKeepsNoTeamOfThem) {
  if (at::get_num_threads() == 1) GTEST_SKIP() << "a program of one thread has no teams";
  constexpr int64_t kSize = 512;  // no team multiplies small ones
  SetOption("compile", "off");
  const at::Tensor x = at::ones({kSize, kSize}).to(Lazy());
  x.matmul(x).cpu();
  int fewest = 1;
  for (int k = 0; k < 3 && fewest > 0; ++k) {  // a compiler's thread may begin meanwhile
    const at::Tensor product = x.matmul(x);
    fewest = std::min(fewest, NumThreadsMadeBy([] { CallOp<void>("sync"); }));
    EXPECT_TRUE(product.cpu().equal(at::full({kSize, kSize}, kSize)));
  }
  EXPECT_LE(fewest, 0);
  SetOption("compile", "async");
}

}  // namespace
}  // namespace torch_lazy::device
