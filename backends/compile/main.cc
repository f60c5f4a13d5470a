// SPDX-License-Identifier: Apache-2.0
// torch_lazy_compile: compiles one order, beside the program that gave it.
//
// Reads the order from file 0 and writes what has become of it to file 1. It outlives the program:
// what is done within eight seconds of the program's end is kept, and then or before all its files
// are gone. Locks that it was given as files 3 and on are held until it ends. What a program has left
// to do (left_work.h) is such an order, too.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "absl/time/clock.h"
#include "backends/compile/carry_out.h"
#include "backends/compile/child.h"
#include "backends/compile/left_work.h"
#include "backends/disk/temporary_folder.h"

namespace torch_lazy::backends {
namespace {

constexpr absl::Duration kAlone = absl::Seconds(8);
constexpr absl::Duration kTimeLimit = absl::Minutes(6);

std::atomic<bool> asked_to_end{false};

std::string ReadOrder() {
  std::string text;
  char part[65536];
  ssize_t size = 0;
  while ((size = read(0, part, sizeof(part))) > 0) text.append(part, static_cast<size_t>(size));
  return text;
}

void WriteResult(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(1, text.data(), text.size());
    if (size <= 0) return;  // there is no result, then
    text.remove_prefix(static_cast<size_t>(size));
  }
}

// Whether to go on.
class Limit {
 public:
  explicit Limit(pid_t program) : program_(program), end_(absl::Now() + kTimeLimit) {}

  bool IsAlone() const { return getppid() != program_; }
  bool IsOver() {
    if (!was_alone_ && IsAlone()) {
      was_alone_ = true;
      end_ = std::min(end_, absl::Now() + kAlone);
      SetPriority(getpid(), Priority::kLow);  // of an idle one that nobody would raise any more
    }
    return asked_to_end || absl::Now() > end_;
  }

 private:
  const pid_t program_;
  absl::Time end_;
  bool was_alone_ = false;
};

int Main() {
  struct sigaction action = {};
  action.sa_handler = [](int) { asked_to_end = true; };
  sigaction(SIGTERM, &action, nullptr);
  LimitResources();
  const absl::StatusOr<Order> order = OrderFrom(ReadOrder());
  if (!order.ok()) {
    WriteResult(TextOf(Compiled{order.status(), {}}));
    return 1;
  }
  Limit limit(order->process);
  if (order->language == Order::Language::kCuda) {  // NVRTC cannot be stopped, and has no files
    std::thread([limit]() mutable {
      while (!limit.IsOver()) absl::SleepFor(absl::Milliseconds(100));
      _exit(1);
    }).detach();
  }
  CarryOutOptions options;
  options.own_group = false;  // it is one of ours, which the program may end
  options.must_stop = [&limit] { return limit.IsOver(); };
  if (order->is_left) {
    CarryOutLeft(*order, options);
  } else {
    WriteResult(TextOf(CarryOut(*order, options)));
  }
  if (limit.IsAlone() && !order->lock_path.empty()) unlink(order->lock_path.c_str());
  SweepTemporaryFolders();
  if (limit.IsOver()) kill(0, SIGKILL);  // compilers that would not end
  return 0;
}

}  // namespace
}  // namespace torch_lazy::backends

// Past what libraries do at exit: NVRTC's threads may be at work.
int main() { _exit(torch_lazy::backends::Main()); }
