// SPDX-License-Identifier: Apache-2.0
// A function that can stop in its middle and go on later.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace torch_lazy::backends {

// Runs on a stack of its own, on whichever thread enters it. Its function never returns: it leaves
// for the last time and is forgotten.
class Fiber {
 public:
  Fiber(void (*function)(void*), void* argument, char* stack, size_t stack_bytes);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void Enter();  // runs it until it leaves
  void Leave();  // called on the fiber

 private:
  static void Start();

  void (*const function_)(void*);
  void* const argument_;
#if defined(__x86_64__)
  void* here_ = nullptr;  // the stack pointers of those that do not run
  void* caller_ = nullptr;
#else
  ucontext_t here_;
  ucontext_t caller_;
#endif
};

// Stacks of one size side by side, each with a page below it that may not be touched.
class Stacks {
 public:
  Stacks(size_t number, size_t stack_bytes);
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();
  char* stack(size_t k) const { return memory_ + k * stride_bytes_ + stride_bytes_ - stack_bytes_; }
  size_t stack_bytes() const { return stack_bytes_; }

 private:
  const size_t stack_bytes_;
  const size_t stride_bytes_;
  const size_t total_bytes_;
  char* memory_;
};

}  // namespace torch_lazy::backends
