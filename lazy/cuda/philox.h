// SPDX-License-Identifier: Apache-2.0
// Random numbers of a recorded call on a GPU.
//
// CUDA's generators count: a number is a function of the seed, an offset, and where the number goes. So a call takes
// both as numbers when it is recorded, in the order of the program, and may run whenever it likes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include <ATen/core/Generator.h>

namespace torch_lazy::lazy {

struct PhiloxDraw {
  int64_t seed = 0, offset = 0;
};

// The next numbers of CUDA's default generator, of which each thread of a kernel takes `per_thread` at most.
PhiloxDraw TakeDraw(uint64_t per_thread);

// Whether CUDA's default generator was seeded since this, or a recurrent net of eager's, asked last: who keeps random
// numbers of its own begins anew then. Nothing on the host and without libtorch_lazy_cuda.so.
std::optional<bool> WasSeeded();

// Held by who draws at once, or captures: to a generator, each draw belongs to the capture meanwhile, whoever draws.
std::mutex& DrawMutex();

// While one lives, CUDA's default generator gives the draw's numbers; in a CUDA graph that this thread captures, those
// that lie as far behind the first ones of its replay as they lie behind those of its capture.
class DrawScope {
 public:
  explicit DrawScope(PhiloxDraw draw);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  PhiloxDraw former_;
};

// While one lives, a replay of a CUDA graph begins its draws here. Nobody else can ask CUDA's default generator
// meanwhile.
class DrawsOfReplay {
 public:
  explicit DrawsOfReplay(PhiloxDraw first);
  ~DrawsOfReplay();
  DrawsOfReplay(const DrawsOfReplay&) = delete;
  DrawsOfReplay& operator=(const DrawsOfReplay&) = delete;

 private:
  const std::lock_guard<std::mutex> nobody_draws_;
  at::Generator generator_;
  const std::lock_guard<std::mutex> nobody_asks_;
  const PhiloxDraw former_;
};

// Where a CUDA graph's draws begin, and its means to move on in them; null outside of a capture.
struct CapturedDraws {
  PhiloxDraw first;
  void (*seek)(void* graph, uint64_t offset);
  void* graph;
};
extern thread_local const CapturedDraws* captured_draws;

}  // namespace torch_lazy::lazy
