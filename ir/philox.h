// SPDX-License-Identifier: Apache-2.0
// Random numbers as CUDA's kernels draw them: each thread has a sequence of its own, numbered by
// the thread, and takes four numbers of it at a time.
//
// Philox4x32-10, Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
#pragma once

#include <array>
#include <cstdint>

namespace torch_lazy::ir {

// Four numbers: the counter is `count` and `thread`, the key is the seed.
std::array<uint32_t, 4> Philox(uint64_t count, uint64_t thread, uint64_t seed);

// Which numbers a launch draws for its elements. `threads` of them go over the elements in rounds:
// in each, a thread does `width` neighbours (2, 4, 8), with four numbers for up to four of them; if
// 1, four elements that lie `threads` apart.
struct PhiloxLaunch {
  int64_t seed = 0;
  int64_t offset = 0;  // of numbers drawn before by each thread; a multiple of four
  int64_t threads = 1;
  int64_t width = 1;
};

// Of element `index`.
uint32_t PhiloxAt(const PhiloxLaunch& launch, int64_t index);

}  // namespace torch_lazy::ir
