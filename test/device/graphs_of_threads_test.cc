// SPDX-License-Identifier: Apache-2.0
// Threads that run one model, each by a CUDA graph of its own. Graphs are emulated: LAZY_BACKEND is stand_in here.
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

constexpr int kThreads = 8;
constexpr int kSteps = 40;

struct Model {
  explicit Model(const at::Device& device)
      : first(Iota({6, 5}).fmod(3).to(device)), second(Iota({5, 4}).fmod(5).to(device)) {}
  at::Tensor operator()(const at::Tensor& x) const { return x.matmul(first).relu().sub(4).matmul(second).fmod(64); }
  const at::Tensor first, second;
};

// Inputs are all there, so that each lies elsewhere; all results are held.
std::vector<at::Tensor> Ask(const Model& model, const at::Device& device, int thread,
                            const std::function<void()>& next) {
  std::vector<at::Tensor> inputs, results;
  for (int step = 0; step < kSteps; ++step) inputs.push_back(Iota({3, 6}).fmod(thread + 2).add(step).to(device));
  for (int step = 0; step < kSteps; ++step) {
    next();
    at::Tensor y = model(inputs[step]);
    EXPECT_EQ(y.sum().item<float>(), y.flatten().sum(0).item<float>());
    results.push_back(std::move(y));
  }
  return results;
}

void InThreads(const std::function<void(int)>& run) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&run, t] { run(t); });
  for (std::thread& thread : threads) thread.join();
}

void ExpectCpus(const std::vector<at::Tensor>& lazy, int thread) {
  const std::vector<at::Tensor> cpu = Ask(Model(at::kCPU), at::kCPU, thread, [] {});
  for (int step = 0; step < kSteps; ++step)
    EXPECT_TRUE(lazy[step].cpu().equal(cpu[step])) << "thread " << thread << ", step " << step;
}

class GraphsOfThreads : public testing::Test {
 protected:
  const Model model_{Lazy()};
  std::vector<std::vector<at::Tensor>> results_{kThreads};
};

TEST_F(GraphsOfThreads, InStep) {
  std::barrier step(kThreads);
  const int64_t before = Metric("graph_replays"), before_on_lanes = Metric("lane_replays");
  InThreads([&](int t) { results_[t] = Ask(model_, Lazy(), t, [&] { step.arrive_and_wait(); }); });
  const int64_t replays = Metric("graph_replays") - before;
  EXPECT_GE(replays, kThreads * (kSteps - 6));
  EXPECT_EQ(Metric("lane_replays") - before_on_lanes, replays);
  for (int t = 0; t < kThreads; ++t) ExpectCpus(results_[t], t);
}

TEST_F(GraphsOfThreads, OnTheirOwn) {
  const int64_t before = Metric("graph_replays");
  InThreads([&](int t) { results_[t] = Ask(model_, Lazy(), t, [] {}); });
  EXPECT_GE(Metric("graph_replays") - before, kThreads * (kSteps - 6));
  for (int t = 0; t < kThreads; ++t) ExpectCpus(results_[t], t);
}

TEST_F(GraphsOfThreads, OneThreadHasNoLane) {
  const int64_t before = Metric("graph_replays"), before_on_lanes = Metric("lane_replays");
  const Model model{Lazy()};
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor y = model(Iota({7, 6}).add(step).to(Lazy())).add(1).neg();
    EXPECT_EQ(y.sum().item<float>(), Model(at::kCPU)(Iota({7, 6}).add(step)).add(1).neg().sum().item<float>());
  }
  EXPECT_GE(Metric("graph_replays") - before, kSteps - 6);
  EXPECT_EQ(Metric("lane_replays"), before_on_lanes);
}

// The main stream orders it with all that others read.
TEST_F(GraphsOfThreads, WhatWritesAParameterTakesNoLane) {
  const int64_t before = Metric("graph_replays"), before_on_lanes = Metric("lane_replays");
  InThreads([&](int t) {
    at::Tensor state = Iota({3, 6}).add(t).to(Lazy()), expected = Iota({3, 6}).add(t);
    const Model cpu(at::kCPU);
    for (int step = 0; step < kSteps; ++step) {
      state.mul_(-1).add_(step);
      expected.mul_(-1).add_(step);
      EXPECT_TRUE(model_(state).cpu().equal(cpu(expected))) << "thread " << t << ", step " << step;
    }
  });
  EXPECT_GT(Metric("graph_replays"), before);
  EXPECT_EQ(Metric("lane_replays"), before_on_lanes);
}

// One thread's results are read by another, while the first goes on.
TEST_F(GraphsOfThreads, ResultsAreHandedOn) {
  const std::vector<at::Tensor> cpu = Ask(Model(at::kCPU), at::kCPU, 0, [] {});
  std::vector<at::Tensor> handed(kSteps);
  std::atomic<int> made{0};
  std::thread reader([&] {
    for (int step = 0; step < kSteps; ++step) {
      while (made.load() <= step) std::this_thread::yield();
      EXPECT_TRUE(handed[step].mul(1).cpu().equal(cpu[step])) << step;
    }
  });
  Ask(model_, Lazy(), 0, [] {});
  std::vector<at::Tensor> inputs;
  for (int step = 0; step < kSteps; ++step) inputs.push_back(Iota({3, 6}).fmod(2).add(step).to(Lazy()));
  for (int step = 0; step < kSteps; ++step) {
    handed[step] = model_(inputs[step]);
    EXPECT_EQ(handed[step].sum().item<float>(), cpu[step].sum().item<float>());
    ++made;
  }
  reader.join();
}

}  // namespace
}  // namespace torch_lazy::device
