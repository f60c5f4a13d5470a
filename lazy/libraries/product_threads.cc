// SPDX-License-Identifier: Apache-2.0
#include "lazy/libraries/product_threads.h"

#include <dlfcn.h>

namespace torch_lazy::lazy {
namespace {

// MKL's own number for the calling thread; 0 is none of its own. Returns the former.
using SetThreads = int (*)(int);

SetThreads FindSetThreads() {
  static const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "MKL_Set_Num_Threads_Local"));
  return set;
}

}  // namespace

bool CanLimitProductThreads() { return FindSetThreads() != nullptr; }

OneProductThread::OneProductThread(bool limit) : limit_(limit && CanLimitProductThreads()) {
  if (limit_) before_ = FindSetThreads()(1);
}

OneProductThread::~OneProductThread() {
  if (limit_) FindSetThreads()(before_);
}

}  // namespace torch_lazy::lazy
