// SPDX-License-Identifier: Apache-2.0
// Whole trainings: losses equal eager's, and nothing is compiled after three steps.
//
// Each test runs in a process of its own, for no other program's traces to be known already.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>

#include "metrics.h"
#include "programs.h"

namespace programs {

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

namespace {

// Set by --device=; with "cpu" the programs are compared with themselves.
std::string device_name = "lazy";
// Set by --eager=. Eager's drift is what it makes, within the run, of another number of threads and of first weights
// that are off by a rounding; that of eager "cuda" is taken to be its distance from the CPU.
std::string eager_name = "cpu";

const Program kPrograms[] = {
    {"Mlp", Mlp},
    {"Resnet", Resnet},
    {"Gpt", Gpt},
    {"Gru", Gru},
    {"Lstm", Lstm},
    {"Dropout", Dropout, /*num_paths=*/1, /*draws=*/true},
    {"Branch", Branch, /*num_paths=*/2},
};

std::vector<double> Train(const Program& program, const std::string& device, int num_threads,
                          bool is_off_by_a_rounding = false) {
  torch::set_num_threads(num_threads);
  Options options;
  options.device = torch::Device(device);
  options.is_off_by_a_rounding = is_off_by_a_rounding;
  return program.run(options);
}

// |a - b|, relative to b where that is above 1.
double Error(double a, double b) { return std::abs(a - b) / std::max(1.0, std::abs(b)); }

// The largest error in steps [begin, end).
double Error(const std::vector<double>& a, const std::vector<double>& b, size_t begin, size_t end) {
  double error = 0;
  for (size_t step = begin; step < end; ++step) error = std::max(error, Error(a[step], b[step]));
  return error;
}

class Losses : public testing::TestWithParam<Program> {};

// The drift at one step may be small by chance, so the last steps' largest is taken, on both sides.
constexpr size_t kLastSteps = 5;
// A few roundings of a float are allowed.
constexpr double kFloor = 16 * 1.19e-7;

TEST_P(Losses, EqualEagerWithinItsOwnDrift) {
  const std::vector<double> eager1 = Train(GetParam(), "cpu", /*num_threads=*/1, /*is_off_by_a_rounding=*/true);
  const std::vector<double> eager2 = Train(GetParam(), eager_name, /*num_threads=*/2);
  const std::vector<double> lazy = Train(GetParam(), device_name, /*num_threads=*/2);
  ASSERT_EQ(lazy.size(), eager2.size());
  const size_t end = lazy.size();
  const double drift = Error(eager1, eager2, end - kLastSteps, end);
  const double error = Error(lazy, eager2, end - kLastSteps, end);
  std::printf("loss %.6f -> %.6f; eager's drift %.2e; error %.2e, in the first five steps %.2e\n", eager2[0],
              eager2[end - 1], drift, error, Error(lazy, eager2, 0, 5));
  for (size_t step = 0; step < 5; ++step) EXPECT_LE(Error(lazy[step], eager2[step]), 1e-5) << "step " << step + 1;
  EXPECT_LE(error, std::max(3 * drift, kFloor));
}

INSTANTIATE_TEST_SUITE_P(Programs, Losses, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

struct Counts {
  int64_t misses;
  int64_t kernels;
  bool operator==(const Counts&) const = default;
};

void PrintTo(const Counts& counts, std::ostream* out) {
  *out << counts.misses << " trace misses, " << counts.kernels << " kernels asked for";
}

// A kernel from the disk was asked for as well.
Counts Now() { return {Metric("trace_misses"), Metric("kernels_compiled") + Metric("kernels_from_disk")}; }

struct Case {
  Program program;
  int read_every;
  int num_threads;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.program.name; }

class Steady : public testing::TestWithParam<Case> {};

// Every thread has done its first steps when counting begins, and its last when it ends.
TEST_P(Steady, AsksForNothingAfterThreeSteps) {
  if (device_name == "cpu") GTEST_SKIP() << "eager execution compiles nothing";
  const auto [program, read_every, num_threads] = GetParam();
  SetOption("compile", "sync");
  const int num_first_steps = 3 * program.num_paths;
  const int num_steps = num_first_steps + 20;
  Counts before{}, after{};
  std::barrier first(num_threads, [&]() noexcept { before = Now(); });
  std::barrier last(num_threads, [&]() noexcept { after = Now(); });

  std::vector<std::vector<double>> losses(num_threads);
  const auto train = [&](int thread) {
    torch::set_num_threads(num_threads == 1 ? 2 : 1);
    Options options;
    options.device = torch::Device(device_name);
    options.steps = num_steps;
    options.read_every = read_every;
    options.after_step = [&](int step) {
      if (step == num_first_steps) first.arrive_and_wait();
      if (step == num_steps) last.arrive_and_wait();
    };
    losses[thread] = program.run(options);
  };
  if (num_threads == 1) {
    train(0);
  } else {
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads; ++i) threads.emplace_back(train, i);
    for (std::thread& thread : threads) thread.join();
  }

  EXPECT_EQ(after, before);
  if (program.draws) return;
  // While one thread's step is interpreted another's may be compiled already: their sums round differently.
  for (const auto& mine : losses) {
    EXPECT_LE(Error(mine, losses[0], 0, 5), 1e-5);
    EXPECT_LE(Error(mine, losses[0], 0, mine.size()), 1e-3);
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Program& program : kPrograms) {
    for (const int read_every : {1, 10, 0}) cases.push_back({program, read_every, /*num_threads=*/1});
    cases.push_back({program, /*read_every=*/1, /*num_threads=*/4});
  }
  return cases;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const auto [program, read_every, num_threads] = info.param;
  const std::string reads = read_every == 0 ? "ReadNever" : "ReadEvery" + std::to_string(read_every);
  return program.name + reads + "Threads" + std::to_string(num_threads);
}

INSTANTIATE_TEST_SUITE_P(Programs, Steady, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace programs

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::pair<std::string, std::string*> flags[] = {{"--device=", &programs::device_name},
                                                        {"--eager=", &programs::eager_name}};
  for (int i = 1; i < argc; ++i) {
    for (const auto& [flag, value] : flags) {
      if (std::string(argv[i]).starts_with(flag)) *value = argv[i] + flag.size();
    }
  }
  return RUN_ALL_TESTS();
}
