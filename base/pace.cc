// SPDX-License-Identifier: Apache-2.0
#include "base/pace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/at_work.h"
#include "base/spare_processors.h"

namespace torch_lazy::base {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Clock::duration kWork = std::chrono::microseconds(300);
constexpr int kSleepPerWork = 9;
constexpr Clock::duration kLongestSleep = std::chrono::milliseconds(10);
constexpr double kEnough = 1.5;  // spare processors: one for the thread, and some for what the program begins meanwhile

thread_local bool unhurried = false;
thread_local Clock::time_point slept_at;
thread_local SpareProcessors spare;
std::atomic<int> num_hurries{0};

}  // namespace

void BecomeUnhurried() {
  unhurried = true;
  slept_at = Clock::now();
}

void GiveWay() {
  StopIfExiting();
  if (!unhurried || num_hurries.load(std::memory_order_relaxed) != 0) return;
  const Clock::duration worked = Clock::now() - slept_at;
  if (worked < kWork || spare.Number() >= kEnough) return;
  std::this_thread::sleep_for(std::min(kSleepPerWork * worked, kLongestSleep));
  slept_at = Clock::now();
}

Hurry::Hurry() { num_hurries.fetch_add(1, std::memory_order_relaxed); }
Hurry::~Hurry() { num_hurries.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace torch_lazy::base
