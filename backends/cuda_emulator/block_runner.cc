// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda_emulator/block_runner.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace torch_lazy::backends {
namespace {

constexpr int kMostThreads = 1024;
constexpr size_t kStackBytes = 64 << 10;
// Tops at different distances from a page's start: the same lines of all stacks would share a few
// sets of the caches.
constexpr size_t kShiftBytes = 320;
constexpr uint64_t kGarbage = 0xfff7dead'fff7dead;  // NaN as a double and as two floats

// The block that a kernel's text talks to; one is enough, since one launch runs at a time.
BlockRunner* runner_of_process = nullptr;

void FillWithGarbage(char* begin, char* end) {
  for (; begin < end; begin += sizeof(kGarbage)) {
    std::memcpy(begin, &kGarbage, std::min<size_t>(sizeof(kGarbage), end - begin));
  }
}

}  // namespace

BlockRunner::Thread::Thread(BlockRunner* of, int k, char* stack, size_t stack_bytes)
    : runner(of), index(k), fiber(&BlockRunner::RunThreads, this, stack, stack_bytes - k % 37 * kShiftBytes) {}

void BlockRunner::Run(const Launch& launch) {
  launch_ = launch;
  entries_ = static_cast<const cuda_emulator::LazyKernel*>(launch.kernel->one);
  num_threads_ = launch.kernel->threads;
  runner_of_process = this;
  LAZY_CHECK(num_threads_ > 0 && num_threads_ <= kMostThreads, launch.kernel->name, ": ", num_threads_,
             " threads a block");
  block_.threads = {static_cast<unsigned>(num_threads_), 1, 1};
  const int64_t grid_y = launch.entry == BlockLaunch::Entry::kMany ? 1 : launch.count;
  block_.blocks = {static_cast<unsigned>(launch.blocks), static_cast<unsigned>(grid_y), 1};
  block_.barrier = &BlockRunner::Barrier;
  block_.exchange = &BlockRunner::Exchange;
  block_.trap = &BlockRunner::Trap;
  if (entries_->waits) GrowTo(num_threads_);
  for (int64_t k = 0; k < launch.blocks * grid_y; ++k) {
    block_.index = {static_cast<unsigned>(k % launch.blocks), static_cast<unsigned>(k / launch.blocks), 0};
    FillWithGarbage(entries_->shared_begin, entries_->shared_end);
    reversed_ = !reversed_;
    entries_->waits ? RunWithWaits() : RunPlainly();
  }
}

void BlockRunner::CallThread() {
  switch (launch_.entry) {
    case BlockLaunch::Entry::kOne:
      return entries_->one(&block_, launch_.arguments);
    case BlockLaunch::Entry::kFew:
      return entries_->few(&block_, launch_.arguments);
    case BlockLaunch::Entry::kMany:
      return entries_->many(&block_, launch_.arguments, launch_.first_block, launch_.count);
    case BlockLaunch::Entry::kExact:
      return entries_->exact(&block_, launch_.arguments);
  }
}

void BlockRunner::RunPlainly() {
  for (int k = 0; k < num_threads_; ++k) {
    block_.thread = {static_cast<unsigned>(At(k, num_threads_)), 0, 0};
    CallThread();
  }
}

void BlockRunner::GrowTo(int threads) {
  if (stacks_ == nullptr) stacks_ = std::make_unique<Stacks>(kMostThreads, kStackBytes);
  for (int k = static_cast<int>(threads_.size()); k < threads; ++k)
    threads_.emplace_back(this, k, stacks_->stack(k), stacks_->stack_bytes());
}

// Entered for a thread of a block, and again for that of the next.
void BlockRunner::RunThreads(void* argument) {
  Thread* const thread = static_cast<Thread*>(argument);
  for (;;) {
    thread->runner->CallThread();
    thread->state = State::kDone;
    thread->fiber.Leave();
  }
}

void BlockRunner::RunWithWaits() {
  const int warps = (num_threads_ + kWarp - 1) / kWarp;
  for (int k = 0; k < num_threads_; ++k) threads_[k].state = State::kReady;
  bool done = false;
  while (!done) {
    for (int w = 0; w < warps; ++w) {
      const int warp = At(w, warps);
      while (RunReady(warp) && EndExchanges(warp)) continue;
    }
    done = true;
    for (int k = 0; k < num_threads_; ++k) done = done && threads_[k].state == State::kDone;
    if (!done) EndBarrier();
  }
}

void BlockRunner::Resume(Thread* thread) {
  running_ = thread;
  block_.thread = {static_cast<unsigned>(thread->index), 0, 0};
  thread->fiber.Enter();
}

bool BlockRunner::RunReady(int warp) {
  const int lanes = std::min(kWarp, num_threads_ - warp * kWarp);
  bool any = false;
  for (int k = 0; k < lanes; ++k) {
    Thread& thread = threads_[warp * kWarp + At(k, lanes)];
    if (thread.state != State::kReady) continue;
    any = true;
    Resume(&thread);
  }
  return any;
}

bool BlockRunner::EndExchanges(int warp) {
  const int end = std::min((warp + 1) * kWarp, num_threads_);
  bool any = false;
  for (int k = warp * kWarp; k < end; ++k) {
    if (threads_[k].state == State::kInWarp) any = EndExchange(warp, threads_[k]) || any;
  }
  return any;
}

// Ends the exchange that `first` waits for if all have come. Threads that have returned are not
// waited for, and neither are lanes beyond the block's end.
bool BlockRunner::EndExchange(int warp, const Thread& first) {
  const uint32_t mask = first.mask;
  const int lanes = std::min(kWarp, num_threads_ - warp * kWarp);
  uint32_t partners = 0;
  uint32_t ballot = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    const Thread& thread = threads_[warp * kWarp + lane];
    if ((mask >> lane & 1) == 0 || thread.state == State::kDone) continue;
    if (thread.state != State::kInWarp) return false;
    if (thread.mask != mask || thread.kind != first.kind || thread.line != first.line)
      Fail(absl::StrCat(Where(first), " while ", Where(thread)));
    partners |= uint32_t{1} << lane;
    if (thread.value != 0) ballot |= uint32_t{1} << lane;
  }
  for (int lane = 0; lane < lanes; ++lane) {
    if ((partners >> lane & 1) == 0) continue;
    Thread& thread = threads_[warp * kWarp + lane];
    thread.shuffled = thread.value;
    thread.partners = partners;
    thread.ballot = ballot;
    thread.state = State::kReady;
  }
  return true;
}

// Nobody can go on: all that have not returned must be at the same barrier.
void BlockRunner::EndBarrier() {
  const Thread* first = nullptr;
  for (int k = 0; k < num_threads_; ++k) {
    const Thread& thread = threads_[k];
    if (thread.state == State::kDone) continue;
    if (first == nullptr) first = &thread;
    if (thread.state != first->state || thread.line != first->line)
      Fail(absl::StrCat(Where(*first), " while ", Where(thread)));
  }
  if (first->state != State::kAtBarrier) Fail(Where(*first));
  for (int k = 0; k < num_threads_; ++k) {
    if (threads_[k].state == State::kAtBarrier) threads_[k].state = State::kReady;
  }
}

void BlockRunner::Barrier(cuda_emulator::LazyBlock*, int line) {
  Thread* const thread = runner_of_process->running_;
  thread->state = State::kAtBarrier;
  thread->line = line;
  thread->fiber.Leave();
}

unsigned long BlockRunner::Exchange(cuda_emulator::LazyBlock*, cuda_emulator::LazyExchange kind, unsigned mask,
                                    unsigned long value, int source, int line) {
  BlockRunner* const runner = runner_of_process;
  Thread* const thread = runner->running_;
  thread->state = State::kInWarp;
  thread->kind = kind;
  thread->mask = mask;
  thread->value = value;
  thread->line = line;
  if ((mask >> thread->index % kWarp & 1) == 0)
    runner->Fail(absl::StrCat(runner->Where(*thread), ", and is not one of these"));
  thread->fiber.Leave();
  if (kind != cuda_emulator::kLazyShuffle) return thread->ballot;
  // Nobody brings a new value to this exchange's end before all have taken the old ones.
  if ((thread->partners >> source & 1) == 0) return kGarbage;
  return runner->threads_[thread->index / kWarp * kWarp + source].shuffled;
}

void BlockRunner::Trap(cuda_emulator::LazyBlock* block, int line) {
  runner_of_process->Fail(absl::StrCat("thread ", block->thread.x, " traps (line ", line, ")"));
}

std::string BlockRunner::Where(const Thread& thread) const {
  const std::string name = absl::StrCat("thread ", thread.index);
  if (thread.state == State::kAtBarrier) return absl::StrCat(name, " waits for its block (line ", thread.line, ")");
  return absl::StrCat(name, " waits for lanes ", absl::Hex(thread.mask), " of its warp (line ", thread.line, ")");
}

void BlockRunner::Fail(const std::string& what) const {
  base::EndProgram(absl::StrCat(launch_.kernel->name, ": block ", block_.index.x,
                                block_.index.y > 0 ? absl::StrCat(" of instance ", block_.index.y) : "", ": ", what));
}

}  // namespace torch_lazy::backends
