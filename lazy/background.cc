// SPDX-License-Identifier: Apache-2.0
#include "lazy/background.h"

#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/at_work.h"
#include "base/pace.h"

namespace torch_lazy::lazy {
namespace {

class Worker {
 public:
  void Post(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(lock_);
    if (!has_thread_) std::thread([this] { Serve(); }).detach();
    has_thread_ = true;
    queue_.push_back(std::move(work));
    more_.notify_one();
  }

 private:
  // Of normal priority: it takes locks (of the allocator, of tables) that the program's threads want, and what it starts,
  // compilers among it, would inherit a lower one for good.
  void Serve() {
    sigset_t signals;
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, nullptr);
    base::BecomeUnhurried();
    while (true) {
      std::unique_lock<std::mutex> lock(lock_);
      more_.wait(lock, [this] { return !queue_.empty(); });
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const base::AtWork at_work;
      work();
    }
  }

  std::mutex lock_;
  std::condition_variable more_;
  std::deque<std::function<void()>> queue_;
  bool has_thread_ = false;
};

}  // namespace

void InBackground(std::function<void()> work) {
  static Worker* const worker = new Worker;
  worker->Post(std::move(work));
}

}  // namespace torch_lazy::lazy
