// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/faults.h"

namespace torch_lazy::base {

bool StartThread(std::function<void()> work) {
  if (MustFail()) return false;
  try {
    std::thread([work = std::move(work)] {
      sigset_t signals;
      sigfillset(&signals);
      pthread_sigmask(SIG_SETMASK, &signals, nullptr);
      work();
    }).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace torch_lazy::base
