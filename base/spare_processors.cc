// SPDX-License-Identifier: Apache-2.0
#include "base/spare_processors.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace torch_lazy::base {
namespace {

constexpr std::chrono::milliseconds kTurn(100);
constexpr std::chrono::seconds kForgotten(1);

double SecondsOfThread() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::optional<double> SpareSeconds() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return std::nullopt;
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::optional<int64_t> ticks = IdleTicks(text, allowed);
  if (!ticks) return std::nullopt;
  return static_cast<double>(*ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)) + SecondsOfThread();
}

}  // namespace

std::optional<int64_t> IdleTicks(absl::string_view stat, const cpu_set_t& allowed) {
  constexpr size_t kNice = 2, kIdle = 4;  // words of a line: "cpu7 user nice system idle ..."
  int64_t ticks = 0;
  int found = 0;
  for (absl::string_view line : absl::StrSplit(stat, '\n')) {
    if (!absl::ConsumePrefix(&line, "cpu")) break;  // processors come first
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int processor = 0;
    if (words.size() <= kIdle || line.front() == ' ' || !absl::SimpleAtoi(words[0], &processor)) continue;
    if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET(processor, &allowed)) continue;
    for (const size_t word : {kNice, kIdle}) {
      int64_t number = 0;
      if (!absl::SimpleAtoi(words[word], &number)) return std::nullopt;
      ticks += number;
    }
    ++found;
  }
  if (found == 0 || found != CPU_COUNT(&allowed)) return std::nullopt;
  return ticks;
}

int NumAllowedProcessors() {
  static const int number = [] {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  }();
  return number;
}

SpareProcessors::SpareProcessors() : SpareProcessors(SpareSeconds) {}

double SpareProcessors::Number(Clock::time_point now) {
  const Clock::duration since = now - asked_at_;
  if (since < kTurn) return number_;
  const std::optional<double> before = std::exchange(seconds_, of_all_());
  const bool is_known = before && seconds_ && since < kForgotten;
  number_ = is_known ? (*seconds_ - *before) / std::chrono::duration<double>(since).count() : 0;
  asked_at_ = now;
  return number_;
}

}  // namespace torch_lazy::base
