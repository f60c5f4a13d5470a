// SPDX-License-Identifier: Apache-2.0
// What a kernel's text and the emulator tell each other: the same declarations for both.
#pragma once

namespace torch_lazy::backends::cuda_emulator {

#define LAZY_CODE_AND_TEXT(text, ...) \
  __VA_ARGS__                         \
  inline constexpr char text[] = #__VA_ARGS__;

// LazyBlock: the block that runs, and its thread that runs. `barrier` waits for all threads of the
// block; `exchange` for those of the warp that `mask` names, and returns what `kind` says. `trap` ends the program.
//
// LazyKernel: a kernel's entries, each for one thread; where its shared memory lies; whether
// its text waits anywhere.
LAZY_CODE_AND_TEXT(
    kBlockText,
    struct LazyIndex {
      unsigned x;
      unsigned y;
      unsigned z;
    };
    enum LazyExchange{kLazySync, kLazyShuffle, kLazyBallot}; struct LazyBlock {
      LazyIndex thread;
      LazyIndex index;
      LazyIndex threads;
      LazyIndex blocks;
      void (*barrier)(LazyBlock*, int line);
      unsigned long (*exchange)(LazyBlock*, LazyExchange kind, unsigned mask, unsigned long value, int source,
                                int line);
      void (*trap)(LazyBlock*, int line);
    };
    struct LazyKernel {
      void (*one)(LazyBlock*, const void* arguments);
      void (*many)(LazyBlock*, const void* table, const int* first_block, int count);
      void (*few)(LazyBlock*, const void* arguments);
      void (*exact)(LazyBlock*, const void* arguments);
      char* shared_begin;
      char* shared_end;
      bool waits;
    };)

#undef LAZY_CODE_AND_TEXT

}  // namespace torch_lazy::backends::cuda_emulator
