// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuda/philox.h"

#include <ATen/Context.h>
#include <c10/core/GeneratorImpl.h>

#include "lazy/cuda/load_library.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/on_host.h"

namespace torch_lazy::lazy {
namespace {

at::Generator Generator() { return at::globalContext().defaultGenerator(EagerDevice()); }

PhiloxDraw StateOf(const at::Generator& generator) {
  return {static_cast<int64_t>(generator.current_seed()),
          static_cast<int64_t>(generator.unsafeGetGeneratorImpl()->get_offset())};
}

// The CPU's generators do not count. What counts there is a number of our own, for tests.
PhiloxDraw TakeOnHost(uint64_t numbers) {
  static PhiloxDraw next;
  const int64_t seed = static_cast<int64_t>(Generator().current_seed());
  if (next.seed != seed) next = {seed, 0};
  const PhiloxDraw draw = next;
  next.offset += static_cast<int64_t>(numbers);
  return draw;
}

// A new seed begins at offset 0. CUDA's generator takes a new offset for a new seed as well. That either was set here
// is no news to who asks whether the program has seeded it.
void SetState(const at::Generator& generator, PhiloxDraw draw) {
  c10::GeneratorImpl* const state = generator.unsafeGetGeneratorImpl();
  const bool is_news = WasSeeded().value_or(true);
  if (StateOf(generator).seed != draw.seed) state->set_current_seed(static_cast<uint64_t>(draw.seed));
  state->set_offset(static_cast<uint64_t>(draw.offset));
  if (!is_news) WasSeeded();
}

}  // namespace

std::optional<bool> WasSeeded() {
  static bool (*const ask)(int) = reinterpret_cast<bool (*)(int)>(FindInCudaLibrary("torch_lazy_cuda_was_seeded"));
  return ask == nullptr ? std::nullopt : std::optional(ask(EagerDevice().index()));
}

thread_local const CapturedDraws* captured_draws = nullptr;

std::mutex& DrawMutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

PhiloxDraw TakeDraw(uint64_t per_thread) {
  constexpr uint64_t kRound = 4;  // as CUDAGeneratorState::increase() does
  const uint64_t numbers = (per_thread + kRound - 1) / kRound * kRound;
  at::Generator generator = Generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const PhiloxDraw draw = IsOnHost() ? TakeOnHost(numbers) : StateOf(generator);
  if (!IsOnHost()) SetState(generator, {draw.seed, draw.offset + static_cast<int64_t>(numbers)});
  return draw;
}

DrawScope::DrawScope(PhiloxDraw draw) {
  if (captured_draws != nullptr) {
    captured_draws->seek(captured_draws->graph, static_cast<uint64_t>(draw.offset - captured_draws->first.offset));
    return;
  }
  lock_ = std::unique_lock<std::mutex>(DrawMutex());
  at::Generator generator = Generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  former_ = StateOf(generator);
  SetState(generator, draw);
}

DrawScope::~DrawScope() {
  if (captured_draws != nullptr) return;
  at::Generator generator = Generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  SetState(generator, former_);
}

DrawsOfReplay::DrawsOfReplay(PhiloxDraw first)
    : nobody_draws_(DrawMutex()),
      generator_(Generator()),
      nobody_asks_(generator_.mutex()),
      former_(StateOf(generator_)) {
  SetState(generator_, first);
}

DrawsOfReplay::~DrawsOfReplay() { SetState(generator_, former_); }

}  // namespace torch_lazy::lazy
