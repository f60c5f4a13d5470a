// SPDX-License-Identifier: Apache-2.0
// How many threads the library behind at::mm takes.
#pragma once

namespace torch_lazy::lazy {

// True if OneProductThread works here: PyTorch was built with MKL.
bool CanLimitProductThreads();

// For a scope, products of the calling thread have no team: threads split sums, so the number of
// threads changes digits.
class OneProductThread {
 public:
  explicit OneProductThread(bool limit);
  ~OneProductThread();
  OneProductThread(const OneProductThread&) = delete;
  OneProductThread& operator=(const OneProductThread&) = delete;

 private:
  const bool limit_;
  int before_ = 0;
};

}  // namespace torch_lazy::lazy
