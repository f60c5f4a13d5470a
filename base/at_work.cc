// SPDX-License-Identifier: Apache-2.0
#include "base/at_work.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace torch_lazy::base {
namespace {

// No lock: a fork may happen at any moment, and its child exits, too.
struct State {
  std::atomic<pid_t> process{0};  // whose threads these are: a fork has none of them
  std::atomic<bool> exiting{false};
  std::atomic<int> at_work{0};
  std::atomic<int> must_end{0};
  std::atomic<unsigned> calls{0};  // of WatchForExit
  std::array<std::atomic<void (*)()>, 4> functions{};
};
constinit State state;
thread_local int depth = 0;  // AtWorks that the thread holds

void BeginExit() {
  constexpr auto kPatience = std::chrono::milliseconds(150);
  if (state.process != getpid()) return;
  for (const auto& call : state.functions) {
    if (void (*const function)() = call) function();
  }
  state.exiting = true;
  // One for all calls: what is registered many times waits once.
  static const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (state.must_end != 0 || (state.at_work != 0 && std::chrono::steady_clock::now() < deadline))
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

struct EndOfThread {
  ~EndOfThread() { BeginExit(); }
};

}  // namespace

AtWork::AtWork() {
  ++depth;
  ++state.at_work;
  StopIfExiting();
}

AtWork::~AtWork() {
  --depth;
  --state.at_work;
  WatchForExit();
}

// Counted first: whoever does not see that the program exits is seen by the exit.
MustEnd::MustEnd() {
  ++state.must_end;
  if (depth == 0 || !IsExiting()) return;
  --state.must_end;
  StopIfExiting();
}

MustEnd::~MustEnd() { --state.must_end; }

void StopIfExiting() {
  if (depth == 0 || !IsExiting()) return;
  state.at_work -= depth;
  while (true) pause();
}

bool IsExiting() { return state.exiting; }

void CallAtExit(void (*function)()) {
  for (auto& call : state.functions) {
    void (*none)() = nullptr;
    if (call.compare_exchange_strong(none, function)) return;
  }
}

void WatchForExit() {
  state.process = getpid();
  if (gettid() == getpid()) {
    static thread_local EndOfThread end;
    static_cast<void>(end);
  }
  constexpr unsigned kAlways = 64;
  const unsigned calls = ++state.calls;
  if (calls <= kAlways || (calls & (calls - 1)) == 0) atexit(BeginExit);
}

}  // namespace torch_lazy::base
