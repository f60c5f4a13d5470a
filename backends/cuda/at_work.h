// SPDX-License-Identifier: Apache-2.0
// Threads that use CUDA's libraries, and the program's exit.
#pragma once

namespace torch_lazy::backends::cuda {

// Held while a thread compiles or loads. The libraries' own data end at exit, which therefore waits
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

// To be called by the program's first thread, if it can be, and again when NVRTC has compiled
// something. Any number of times.
//
// NVRTC registers what is to be done at exit during its first compilation, and what is registered
// last is done first: to wait before it, one has to register after it. What a thread does at its
// own end comes before all of that, if it is the thread that exits.
void WaitForWorkAtExit();

}  // namespace torch_lazy::backends::cuda
