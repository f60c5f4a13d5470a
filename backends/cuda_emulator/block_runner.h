// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a CUDA kernel on one thread of the CPU.
//
// A block's threads run one after the other, each until it waits; whoever waits for a warp or the
// block goes on when all of these have come. What a GPU leaves undefined ends the program with a
// message: threads that wait for each other at different places, or for one that never comes. What
// would go unnoticed is made to show: shared memory begins as garbage, and the order of the threads
// changes from block to block.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/blocks/block_launches.h"
#include "backends/cuda_emulator/block.h"
#include "backends/cuda_emulator/fiber.h"

namespace torch_lazy::backends {

class BlockRunner {
 public:
  // `arguments`: a table of `count` for the entry for many, else what the entry takes by value, whose grid
  // has `count` instances.
  struct Launch {
    const BlockKernel* kernel = nullptr;  // whose entries are a cuda_emulator::LazyKernel
    int64_t blocks = 0;
    BlockLaunch::Entry entry = BlockLaunch::Entry::kOne;
    const void* arguments = nullptr;
    const int* first_block = nullptr;
    int count = 0;
  };
  void Run(const Launch& launch);

 private:
  enum class State : uint8_t { kReady, kAtBarrier, kInWarp, kDone };
  struct Thread {
    Thread(BlockRunner* runner, int index, char* stack, size_t stack_bytes);
    BlockRunner* const runner;
    const int index;
    Fiber fiber;
    State state = State::kReady;
    int line = 0;  // where it waits, in the text
    cuda_emulator::LazyExchange kind = cuda_emulator::kLazySync;
    uint32_t mask = 0;
    uint64_t value = 0;     // what it brings
    uint32_t ballot = 0;    // what comes of it
    uint64_t shuffled = 0;  // its value, for the others
    uint32_t partners = 0;  // whose values there are
  };
  static constexpr int kWarp = 32;

  static void Barrier(cuda_emulator::LazyBlock* block, int line);
  static unsigned long Exchange(cuda_emulator::LazyBlock* block, cuda_emulator::LazyExchange kind, unsigned mask,
                                unsigned long value, int source, int line);
  static void Trap(cuda_emulator::LazyBlock* block, int line);
  static void RunThreads(void* thread);  // a fiber's function

  void CallThread();
  void GrowTo(int threads);
  void RunPlainly();
  void RunWithWaits();
  void Resume(Thread* thread);
  bool RunReady(int warp);
  bool EndExchanges(int warp);
  bool EndExchange(int warp, const Thread& first);
  void EndBarrier();
  int At(int k, int count) const { return reversed_ ? count - 1 - k : k; }
  [[noreturn]] void Fail(const std::string& what) const;
  std::string Where(const Thread& thread) const;

  Launch launch_;
  const cuda_emulator::LazyKernel* entries_ = nullptr;
  int num_threads_ = 0;
  bool reversed_ = false;
  cuda_emulator::LazyBlock block_ = {};
  std::unique_ptr<Stacks> stacks_;
  std::deque<Thread> threads_;  // as many as a block has had so far
  Thread* running_ = nullptr;
};

}  // namespace torch_lazy::backends
