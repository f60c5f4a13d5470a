// SPDX-License-Identifier: Apache-2.0
#include "lazy/host/fork.h"

#include <atomic>

#include "lazy/host/lock.h"
#include "lazy/host/run_thread.h"

namespace torch_lazy::lazy {
namespace {

std::atomic<bool> is_forked{false};

}  // namespace

void BeforeFork() {
  RunThread::Get().Close();
  DeviceLock().lock();
}

void AfterForkInParent() {
  DeviceLock().unlock();
  RunThread::Get().Open();
}

void AfterForkInChild() {
  is_forked = true;
  DeviceLock().ForgetOthers();
  RunThread::Get().Open();
}

bool IsForked() { return is_forked.load(std::memory_order_relaxed); }

}  // namespace torch_lazy::lazy
