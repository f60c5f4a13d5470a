// SPDX-License-Identifier: Apache-2.0
// Threads that use CUDA's libraries, and the program's exit.
#pragma once

namespace torch_lazy::backends::cuda {

// Held while a thread compiles or loads. The libraries end before us at exit, which therefore waits
// for those that are at work and lets nobody begin.
class AtWork {
 public:
  AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork();
  bool may_begin() const { return may_begin_; }  // false: the program exits

 private:
  const bool may_begin_;
};

// To be called when the libraries have been opened, so that the exit waits before they end.
void WaitForWorkAtExit();

}  // namespace torch_lazy::backends::cuda
