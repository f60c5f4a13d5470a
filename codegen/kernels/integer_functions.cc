// SPDX-License-Identifier: Apache-2.0
// Division of integers by 0 gives 0. Random numbers are integers, those of ir/philox.h.
#include "codegen/kernels/integer_functions.h"

namespace torch_lazy::codegen {
namespace {

constexpr NamedFunction kIntegerFunctions[] = {
    {"lazy_floor_div", R"(
// Integers: 0 for division by 0; division by -1 is negation, since the lowest number divided by it traps.
template <typename T> inline T lazy_floor_div(T a, T b) {
  if (b == 0) return 0;
  if (b == (T)-1 && b < 0) return -a;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
// Exact quotients stay exact where a / b would be rounded up to the next whole number.
inline float lazy_floor_div(float a, float b) {
  const float m = lazy_float_mod(a, b);
  const float q = (a - m) / b - ((m != 0) & ((b < 0) != (m < 0)) ? 1.0f : 0.0f);
  const float f = __builtin_floorf(q);
  const float y = q == 0 ? __builtin_copysignf(0.0f, a / b) : q - f > 0.5f ? f + 1 : f;
  return b == 0 ? a / b : y;
}
inline double lazy_floor_div(double a, double b) {
  const double m = lazy_float_mod(a, b);
  const double q = (a - m) / b - ((m != 0) & ((b < 0) != (m < 0)) ? 1.0 : 0.0);
  const double f = __builtin_floor(q);
  const double y = q == 0 ? __builtin_copysign(0.0, a / b) : q - f > 0.5 ? f + 1 : f;
  return b == 0 ? a / b : y;
}
)"},
    {"lazy_trunc_div", R"(
template <typename T> inline T lazy_trunc_div(T a, T b) {
  return b == 0 ? (T)0 : b == (T)-1 && b < 0 ? (T)-a : (T)(a / b);
}
)"},
    {"lazy_fmod", R"(
template <typename T> inline T lazy_fmod(T a, T b) { return b == 0 || (b == (T)-1 && b < 0) ? (T)0 : (T)(a % b); }
)"},
    {"lazy_remainder", R"(
template <typename T> inline T lazy_remainder(T a, T b) {
  if (b == 0 || (b == (T)-1 && b < 0)) return 0;
  const T m = a % b;
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
inline float lazy_remainder(float a, float b) {
  const float m = lazy_float_mod(a, b);
  return (m != 0) & ((b < 0) != (m < 0)) ? m + b : m;
}
inline double lazy_remainder(double a, double b) {
  const double m = lazy_float_mod(a, b);
  return (m != 0) & ((b < 0) != (m < 0)) ? m + b : m;
}
)"},
    {"lazy_pow", R"(
template <typename T> inline T lazy_pow(T a, T b) {
  if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (b % 2 == 0 ? 1 : -1) : 0;
  T y = 1;
  for (; b != 0; b >>= 1, a *= a) {
    if (b & 1) y *= a;
  }
  return y;
}
)"},
    {"lazy_high_product", R"(
inline unsigned lazy_high_product(unsigned a, unsigned b) { return (unsigned)((unsigned long)a * b >> 32); }
)"},
    {"lazy_philox", R"(
struct lazy_four { unsigned x0, x1, x2, x3; };
// As ir/philox.h.
inline lazy_four lazy_philox(unsigned long count, unsigned thread, unsigned long seed) {
  unsigned x0 = (unsigned)count, x1 = (unsigned)(count >> 32), x2 = thread, x3 = 0;
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = lazy_high_product(0xD2511F53u, x0), low0 = 0xD2511F53u * x0;
    const unsigned high2 = lazy_high_product(0xCD9E8D57u, x2), low2 = 0xCD9E8D57u * x2;
    x0 = high2 ^ x1 ^ k0, x1 = low2, x2 = high0 ^ x3 ^ k1, x3 = low0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {x0, x1, x2, x3};
}
)"},
    {"lazy_philox_group", R"(
// Of the group'th 2 or 4 neighbours, where a thread does `width`.
inline lazy_four lazy_philox_group(unsigned group, long seed, long offset, unsigned threads, unsigned width) {
  const unsigned groups = width > 4 ? width / 4 : 1, vector = group / groups, round = vector / threads;
  return lazy_philox((unsigned long)offset / 4 + (unsigned long)round * groups + group % groups, vector - round * threads, seed);
}
)"},
    {"lazy_bernoulli", R"(
inline bool lazy_bernoulli(long index, long seed, long offset, long threads, long width, long threshold) {
  const unsigned at = (unsigned)index, size = width > 4 ? 4 : (unsigned)width, n = (unsigned)threads;
  unsigned lane = at % size;
  lazy_four four;
  if (width == 1) {
    const unsigned column = at / n;
    four = lazy_philox((unsigned long)offset / 4 + column / 4, at - column * n, seed), lane = column % 4;
  } else {
    four = lazy_philox_group(at / size, seed, offset, n, (unsigned)width);
  }
  const unsigned number = lane & 2 ? (lane & 1 ? four.x3 : four.x2) : lane & 1 ? four.x1 : four.x0;
  return number < (unsigned)threshold;
}
)"},
    {"lazy_bernoullis", R"(
// Of V places from `first` on; numbers that come together are computed once, wherever `first` is among them.
template <int V> inline void lazy_bernoullis(bool (&to)[V], long first, long seed, long offset, long threads, long width, long threshold) {
  if (width == 1) {
#pragma unroll
    for (int k = 0; k < V; ++k) to[k] = lazy_bernoulli(first + k, seed, offset, threads, width, threshold);
    return;
  }
  const unsigned size = width > 4 ? 4 : (unsigned)width, lane = (unsigned)first % size, limit = (unsigned)threshold;
  unsigned bits = 0;
#pragma unroll
  for (unsigned k = 0; k <= V; k += size) {
    if (k >= V + lane) break;
    const lazy_four four = lazy_philox_group((unsigned)first / size + k / size, seed, offset, (unsigned)threads, (unsigned)width);
    bits |= (unsigned)(four.x0 < limit) << k | (unsigned)(four.x1 < limit) << (k + 1);
    if (size == 4) bits |= (unsigned)(four.x2 < limit) << (k + 2) | (unsigned)(four.x3 < limit) << (k + 3);
  }
  bits >>= lane;
#pragma unroll
  for (int k = 0; k < V; ++k) to[k] = bits >> k & 1;
}
)"},
};

}  // namespace

absl::Span<const NamedFunction> IntegerFunctions() { return kIntegerFunctions; }

}  // namespace torch_lazy::codegen
