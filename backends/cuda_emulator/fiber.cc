// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda_emulator/fiber.h"

#include <sys/mman.h>

#include "base/check.h"

namespace torch_lazy::backends {
namespace {

constexpr size_t kPage = 4096;

thread_local Fiber* starting = nullptr;

}  // namespace

#if defined(__x86_64__)

// swapcontext asks the system for the signal mask, which takes a hundred times as long. What a
// called function must keep is all there is to keep. It jumps, since a processor predicts a return
// to go where the last call came from.
extern "C" void lazy_switch_stack(void** from, void* to);
asm(R"(
.text
.globl lazy_switch_stack
.hidden lazy_switch_stack
.type lazy_switch_stack, @function
lazy_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size lazy_switch_stack, .-lazy_switch_stack
)");

Fiber::Fiber(void (*function)(void*), void* argument, char* stack, size_t stack_bytes)
    : function_(function), argument_(argument) {
  void** const top = reinterpret_cast<void**>(stack + stack_bytes / 16 * 16);
  top[-1] = nullptr;  // where a caller's address would be
  top[-2] = reinterpret_cast<void*>(&Fiber::Start);
  here_ = top - 8;  // six registers, of no meaning yet
}

void Fiber::Enter() {
  starting = this;
  lazy_switch_stack(&caller_, here_);
}

void Fiber::Leave() { lazy_switch_stack(&here_, caller_); }

#else

Fiber::Fiber(void (*function)(void*), void* argument, char* stack, size_t stack_bytes)
    : function_(function), argument_(argument) {
  LAZY_CHECK(getcontext(&here_) == 0, "no context");
  here_.uc_stack.ss_sp = stack;
  here_.uc_stack.ss_size = stack_bytes;
  here_.uc_link = nullptr;
  makecontext(&here_, &Fiber::Start, 0);
}

void Fiber::Enter() {
  starting = this;
  swapcontext(&caller_, &here_);
}

void Fiber::Leave() { swapcontext(&here_, &caller_); }

#endif

void Fiber::Start() {
  Fiber* const fiber = starting;
  fiber->function_(fiber->argument_);
  base::EndProgram("a fiber's function has returned");
}

Stacks::Stacks(size_t number, size_t stack_bytes)
    : stack_bytes_(stack_bytes), stride_bytes_(stack_bytes + kPage), total_bytes_(number * stride_bytes_) {
  void* const memory =
      mmap(nullptr, total_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LAZY_CHECK(memory != MAP_FAILED, "no memory for ", number, " stacks");
  memory_ = static_cast<char*>(memory);
  for (size_t k = 0; k < number; ++k) mprotect(memory_ + k * stride_bytes_, kPage, PROT_NONE);
}

Stacks::~Stacks() { munmap(memory_, total_bytes_); }

}  // namespace torch_lazy::backends
