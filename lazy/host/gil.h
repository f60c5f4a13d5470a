// SPDX-License-Identifier: Apache-2.0
// Python's global lock, where there is a Python.
//
// PyTorch takes it when the last or the second owner of a tensor that Python knows goes or comes, and some of its
// bindings call operators with the lock held. Hence two rules: who holds the device lock copies and drops no tensor of
// the user's; and who waits for another thread's run, or runs a trace, does not hold Python's lock.
#pragma once

namespace torch_lazy::lazy {

// Lets other Python threads run during its life. Does nothing where the calling thread does not hold the lock.
class ReleaseGil {
 public:
  ReleaseGil();
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  void* state_ = nullptr;
};

}  // namespace torch_lazy::lazy
