// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/background.h"

#include <condition_variable>
#include <deque>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/at_work.h"
#include "base/log.h"
#include "base/pace.h"
#include "base/thread.h"

namespace torch_lazy::lazy {
namespace {

class Worker {
 public:
  void Post(std::function<void()> work) {
    {
      std::lock_guard<std::mutex> lock(lock_);
      if (!has_thread_) has_thread_ = base::StartThread([this] { Serve(); });
      if (has_thread_) {
        queue_.push_back(std::move(work));
        more_.notify_one();
        return;
      }
    }
    work();
  }

 private:
  // Of normal priority: it takes locks (of the allocator, of tables) that the program's threads want, and what it
  // starts, compilers among it, would inherit a lower one for good.
  void Serve() {
    base::BecomeUnhurried();
    while (true) {
      std::unique_lock<std::mutex> lock(lock_);
      more_.wait(lock, [this] { return !queue_.empty(); });
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const base::AtWork at_work;
      try {
        work();
      } catch (const std::exception& error) {  // no memory, say
        base::WarnOnce("background", absl::StrCat("work in the background failed: ", error.what()));
      }
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
