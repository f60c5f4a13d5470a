// SPDX-License-Identifier: Apache-2.0
#include "ir/philox.h"

#include <algorithm>

namespace torch_lazy::ir {

std::array<uint32_t, 4> Philox(uint64_t count, uint64_t thread, uint64_t seed) {
  constexpr int kRounds = 10;
  constexpr uint64_t kFactors[] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  std::array<uint32_t, 4> c = {low(count), high(count), low(thread), high(thread)};
  uint32_t key[] = {low(seed), high(seed)};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t first = kFactors[0] * c[0], second = kFactors[1] * c[2];
    c = {high(second) ^ c[1] ^ key[0], low(second), high(first) ^ c[3] ^ key[1], low(first)};
    for (int k = 0; k < 2; ++k) key[k] += kWeyl[k];
  }
  return c;
}

uint32_t PhiloxAt(const PhiloxLaunch& launch, int64_t index) {
  const auto at = static_cast<uint64_t>(index), threads = static_cast<uint64_t>(launch.threads),
             width = static_cast<uint64_t>(launch.width);
  const uint64_t drawn = static_cast<uint64_t>(launch.offset) / 4;
  const auto seed = static_cast<uint64_t>(launch.seed);
  if (width == 1) return Philox(drawn + at / threads / 4, at % threads, seed)[at / threads % 4];
  const uint64_t group = std::min<uint64_t>(width, 4), groups = width / group;
  const uint64_t vector = at / width;
  const uint64_t count = drawn + vector / threads * groups + at % width / group;
  return Philox(count, vector % threads, seed)[at % group];
}

}  // namespace torch_lazy::ir
