// SPDX-License-Identifier: Apache-2.0
// Random C++ programs on device lazy, against eager execution on the CPU.
//
//   random_programs [--compile=off|sync] [--programs=1000] [--seed=0] [--steps=40] [--jobs=2]
//
// Each program runs three times, some then in two threads at once; tensors, values, errors and aliases must be eager's
// after each. Prints a failing program, made as small as it gets, as C++, and "N of M passed"; exits with 1 unless all
// have passed.
#include <cstdio>
#include <deque>
#include <thread>

#include <ATen/Parallel.h>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "test/fuzz/cpp/child.h"
#include "test/fuzz/cpp/generate.h"
#include "torch_lazy/torch_lazy.h"

ABSL_FLAG(std::string, compile, "off", "the device's option: off, to interpret all traces, or sync");
ABSL_FLAG(int, programs, 1000, "how many");
ABSL_FLAG(int, seed, 0, "of the first program; the others count on from there");
ABSL_FLAG(int, steps, 40, "of a program");
ABSL_FLAG(int, jobs, 2, "processes at once");

namespace torch_lazy::fuzz {
namespace {

constexpr int kRuns = 3;
constexpr int kBatch = 20;                                 // programs of a process
constexpr unsigned kBatchLimit = 240, kProgramLimit = 30;  // seconds

// One in five; these draw no random numbers, since threads share the generator.
bool RunsInThreads(int seed) { return seed % 5 == 0; }

Program ProgramOf(int seed) { return Generate(seed, absl::GetFlag(FLAGS_steps), !RunsInThreads(seed)); }

struct Silent : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void SetUp() {
  c10::WarningUtils::set_warning_handler(new Silent);
  at::set_num_threads(1);
  SetOption("compile", absl::GetFlag(FLAGS_compile));
}

// Whether eager's numbers are exact after each step. A list that raises halfway has been written in part.
bool IsComparable(const Program& program) {
  at::manual_seed(0);
  Machine machine(at::kCPU);
  for (const Step& step : program) {
    machine.Run(step);
    if (!IsExact(machine)) return false;
    if (!machine.errors().back().empty() && absl::StrContains(step.form().text, "_foreach_")) return false;
  }
  return true;
}

// What is unlike eager execution, or nothing.
std::string FailureOf(const Program& program, bool in_threads) {
  if (!IsComparable(program)) return "";
  const at::Device lazy("lazy");
  const auto expected = RunOn(at::kCPU, program);
  for (int run = 0; run < kRuns; ++run) {
    std::string text = Difference(*RunOn(lazy, program), *expected);
    if (!text.empty()) return text;
  }
  if (!in_threads) return "";
  std::unique_ptr<Machine> machines[2];
  std::thread other([&] { machines[1] = RunOn(lazy, program); });
  machines[0] = RunOn(lazy, program);
  other.join();
  for (const auto& machine : machines) {
    const std::string text = Difference(*machine, *expected);
    if (!text.empty()) return absl::StrCat("in threads: ", text);
  }
  return "";
}

// The seed and the text of the first failure among the programs from `seed` on, or nothing.
std::string FirstFailure(int seed, int end) {
  SetUp();
  for (; seed < end; ++seed) {
    const std::string text = FailureOf(ProgramOf(seed), RunsInThreads(seed));
    if (!text.empty()) return absl::StrCat(seed, " ", text);
  }
  return "";
}

std::string Verdict(const Program& program, bool in_threads) {
  return Child(
             [&] {
               SetUp();
               return FailureOf(program, in_threads);
             },
             kProgramLimit)
      .Wait();
}

// The least part that still fails when any one step of it is left out: removes ever shorter runs.
Program Shrink(Program program, bool in_threads) {
  for (size_t length = program.size() / 2; length > 0;) {
    bool removed = false;
    for (size_t begin = 0; begin < program.size();) {
      Program part = program;
      part.erase(part.begin() + begin, part.begin() + std::min(begin + length, part.size()));
      if (Verdict(part, in_threads).empty()) {
        begin += length;
      } else {
        program = std::move(part);
        removed = true;
      }
    }
    if (length > 1 || !removed) length /= 2;
  }
  return program;
}

void Report(int seed, const std::string& text) {
  std::printf("FAILED seed %d: %s\n", seed, text.c_str());
  const bool in_threads = RunsInThreads(seed);
  const Program program = Read(Child([&] { return Write(ProgramOf(seed)); }, kProgramLimit).Wait());
  if (Verdict(program, in_threads).empty()) {
    std::printf("  passes alone: it takes what other programs of its batch have left\n");
    return;
  }
  const Program small = Shrink(program, in_threads);
  std::printf("  as small as it gets: %s\n", Verdict(small, in_threads).c_str());
  for (const Step& step : small) std::printf("    %s;\n", step.Text().c_str());
}

int Main() {
  const int begin = absl::GetFlag(FLAGS_seed), end = begin + absl::GetFlag(FLAGS_programs);
  struct Batch {
    int begin, end;
    Child child;
  };
  std::deque<Batch> running;
  int next = begin, passed = 0;
  std::vector<std::pair<int, std::string>> failures;
  const auto start = [&](int from, int to) {
    running.push_back({from, to, Child([=] { return FirstFailure(from, to); }, kBatchLimit)});
  };
  while (next < end || !running.empty()) {
    for (; next < end && running.size() < static_cast<size_t>(absl::GetFlag(FLAGS_jobs)); next += kBatch) {
      start(next, std::min(next + kBatch, end));
    }
    Batch batch = running.front();
    running.pop_front();
    const std::string text = batch.child.Wait();
    int failed = batch.end;  // what follows a failure runs as a batch of its own; one that dies counts as one failure
    if (absl::StartsWith(text, "crashed") || text == "hung") {
      failures.emplace_back(batch.begin, text);
      continue;
    }
    if (!text.empty()) {
      failed = std::stoi(text);
      failures.emplace_back(failed, text.substr(text.find(' ') + 1));
      if (failed + 1 < batch.end) start(failed + 1, batch.end);
    }
    passed += failed - batch.begin;
  }
  for (size_t i = 0; i < std::min<size_t>(failures.size(), 10); ++i) Report(failures[i].first, failures[i].second);
  std::printf("random programs C++ %s: %d of %d passed\n", absl::GetFlag(FLAGS_compile).c_str(), passed, end - begin);
  return failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace torch_lazy::fuzz

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return torch_lazy::fuzz::Main();
}
