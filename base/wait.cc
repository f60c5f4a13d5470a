// SPDX-License-Identifier: Apache-2.0
#include "base/wait.h"

#include "base/at_work.h"

namespace torch_lazy::base {
namespace {

thread_local Interruptible* current = nullptr;

}  // namespace

Interruptible::Interruptible(bool (*interrupted)()) : interrupted_(interrupted), former_(current) { current = this; }
Interruptible::~Interruptible() { current = former_; }

bool MustStopWaiting() {
  if (IsExiting()) return true;
  if (current == nullptr) return false;
  current->was_interrupted_ = current->was_interrupted_ || current->interrupted_();
  return current->was_interrupted_;
}

}  // namespace torch_lazy::base
