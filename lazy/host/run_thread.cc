// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/run_thread.h"

#include <chrono>
#include <utility>

#include <ATen/Parallel.h>
#include <sched.h>
#include <unistd.h>

#include "backends/registry.h"
#include "base/at_work.h"
#include "base/thread.h"
#include "lazy/host/gil.h"

namespace torch_lazy::lazy {
namespace {

thread_local bool runs_what_was_posted = false;  // on this thread

// Until `value` is another. To sleep and to be woken costs tens of microseconds, and most waits
// here are short.
void WaitForChange(const std::atomic<uint32_t>& value, uint32_t old) {
  constexpr int kYields = 200;
  for (int i = 0; i < kYields && value.load() == old; ++i) std::this_thread::yield();
  value.wait(old);
}

}  // namespace

RunThread& RunThread::Get() {
  static RunThread* const thread = new RunThread;
  return *thread;
}

bool RunThread::Acquire() {
  while (true) {
    uint64_t ticket;
    {
      std::lock_guard<std::mutex> lock(lock_);
      if (num_closed_ > 0) return false;
      const bool busy = done_.load() != ticket_;
      if (busy && user_.load() != std::this_thread::get_id()) return false;
      if (!busy && error_ == nullptr && leftovers_.empty()) {
        if (!has_thread_ && !Start()) return false;
        // Before anybody may learn that the caller's trace is ahead: a wait must wait for it,
        // posted or not.
        ++ticket_;
        user_ = std::this_thread::get_id();
        return true;
      }
      ticket = ticket_;
    }
    HelpUntilDone(ticket);
    DropAndRaise();
  }
}

bool RunThread::Start() {
  leftovers_.reserve(1);  // it never holds more, and the thread itself may not fail
  if (!base::StartThread([this] { Serve(); })) return false;
  base::CallAtExit([] {
    Get().Close();
    Get().lock_.unlock();
  });
  has_thread_ = true;
  return true;
}

void RunThread::Post(Runs run, std::shared_ptr<void> keep) {
  {
    std::lock_guard<std::mutex> lock(lock_);
    run_ = std::move(run);
    keep_ = std::move(keep);
    state_ = State::kPosted;
  }
  KeepAway();
  posts_.fetch_add(1);
  posts_.notify_one();
}

// Linux wakes a thread where its waker runs, and may leave both there for long, though another
// processor has nothing to do.
void RunThread::KeepAway() {
  const int here = sched_getcpu();
  const pid_t thread = thread_.load();
  if (thread == 0 || here < 0 || here == away_from_.exchange(here)) return;
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof processors, &processors) != 0 || CPU_COUNT(&processors) < 2) return;
  CPU_CLR(here, &processors);
  sched_setaffinity(thread, sizeof processors, &processors);
}

void RunThread::Wait() {
  Drain();
  DropAndRaise();
}

void RunThread::Drain() {
  uint64_t ticket;
  {
    std::lock_guard<std::mutex> lock(lock_);
    ticket = ticket_;
  }
  HelpUntilDone(ticket);
}

void RunThread::DrainOwn() {
  if (user_.load() != std::this_thread::get_id()) return;
  uint64_t ticket;
  {
    std::lock_guard<std::mutex> lock(lock_);
    ticket = ticket_;
  }
  if (done_.load() >= ticket) return;
  const ReleaseGil release;
  HelpUntilDone(ticket);
}

void RunThread::Close() {
  {
    std::lock_guard<std::mutex> lock(lock_);
    ++num_closed_;
  }
  Drain();
  lock_.lock();
}

void RunThread::Open() {
  --num_closed_;
  lock_.unlock();
}

void RunThread::HelpUntilDone(uint64_t ticket) {
  constexpr std::chrono::milliseconds kPatience(1);  // a processor that idles wakes a thread much sooner
  const auto start = std::chrono::steady_clock::now();
  while (!runs_what_was_posted) {
    const uint32_t event = events_.load();
    if (done_.load() >= ticket) return;
    if (TakeBack(State::kSentBack) || backends::Get().Help()) continue;
    if (state_.load() != State::kPosted) {
      WaitForChange(events_, event);
    } else if (std::chrono::steady_clock::now() - start < kPatience || !TakeBack(State::kPosted)) {
      std::this_thread::yield();
    }
  }
}

RunThread::Runs RunThread::Take(State if_state) {
  if (state_.load() != if_state) return nullptr;
  std::lock_guard<std::mutex> lock(lock_);
  State expected = if_state;
  return state_.compare_exchange_strong(expected, State::kTaken) ? std::exchange(run_, nullptr) : nullptr;
}

void RunThread::SendBack(Runs run) {
  {
    std::lock_guard<std::mutex> lock(lock_);
    run_ = std::move(run);
    state_ = State::kSentBack;
  }
  events_.fetch_add(1);
  events_.notify_all();
}

bool RunThread::TakeBack(State if_state) {
  Runs run = Take(if_state);
  if (run == nullptr) return false;
  std::exception_ptr error;
  runs_what_was_posted = true;
  try {
    run(Where::kInProgram);
  } catch (...) {
    error = std::current_exception();
  }
  runs_what_was_posted = false;
  run = nullptr;
  End(std::move(error));
  return true;
}

void RunThread::End(std::exception_ptr error) {
  {
    std::lock_guard<std::mutex> lock(lock_);
    leftovers_.push_back(std::move(keep_));
    if (error != nullptr) error_ = std::move(error);
    done_.fetch_add(1);
  }
  events_.fetch_add(1);
  events_.notify_all();
}

void RunThread::DropAndRaise() {
  std::vector<std::shared_ptr<void>> leftovers;
  std::exception_ptr error;
  {
    std::lock_guard<std::mutex> lock(lock_);
    leftovers.swap(leftovers_);
    error = std::exchange(error_, nullptr);
  }
  leftovers.clear();
  if (error != nullptr) std::rethrow_exception(error);
}

std::thread::id ProgramThread() { return runs_what_was_posted ? RunThread::Get().user() : std::this_thread::get_id(); }

void RunThread::Serve() {
  runs_what_was_posted = true;
  thread_.store(gettid());
  at::get_num_threads();  // sets this thread's team, which OfferLaunches takes from it again
  backends::Get().OfferLaunches(&events_);
  for (uint32_t served = 0;; ++served) {
    WaitForChange(posts_, served);
    Runs run = Take(State::kPosted);
    if (run == nullptr) continue;  // the program has taken it back
    bool has_run = true;
    std::exception_ptr error;
    try {
      has_run = run(Where::kHere);
    } catch (...) {
      error = std::current_exception();
    }
    if (has_run) {
      run = nullptr;
      End(std::move(error));
    } else {
      SendBack(std::move(run));
    }
    base::WatchForExit();
  }
}

}  // namespace torch_lazy::lazy
