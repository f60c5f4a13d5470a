// SPDX-License-Identifier: Apache-2.0
// Transcendental functions are polynomials without branches, so that loops over them become vector
// code; they are right to about 2 ulp and handle NaN, infinities and subnormal numbers. Those of
// doubles stand in double_functions.cc.
#include "codegen/kernels/float_functions.h"

namespace torch_lazy::codegen {
namespace {

constexpr NamedFunction kFloatFunctions[] = {
    {"lazy_from_bf16", R"(
inline float lazy_from_bf16(unsigned short x) { return __builtin_bit_cast(float, (unsigned)x << 16); }
)"},
    {"lazy_bf16_bits", R"(
// To nearest, ties to even; a NaN stays one.
inline unsigned lazy_bf16_bits(float x) {
  const unsigned b = __builtin_bit_cast(unsigned, x);
  return x != x ? 0x7fc0u : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
}
)"},
    {"lazy_to_bf16", R"(
inline unsigned short lazy_to_bf16(float x) { return (unsigned short)lazy_bf16_bits(x); }
)"},
    {"lazy_round_bf16", R"(
inline float lazy_round_bf16(float x) { return __builtin_bit_cast(float, lazy_bf16_bits(x) << 16); }
)"},
    {"lazy_from_f16", R"(
inline float lazy_from_f16(unsigned short x) {
  const unsigned sign = (unsigned)(x & 0x8000u) << 16, rest = (unsigned)(x & 0x7fffu) << 13;
  const float normal = __builtin_bit_cast(float, rest + 0x38000000u);
  const float special = __builtin_bit_cast(float, rest + 0x70000000u);
  const float subnormal = __builtin_bit_cast(float, rest + 0x38800000u) - 6.103515625e-05f;
  const float size = rest >= 0x0f800000u ? special : rest < 0x00800000u ? subnormal : normal;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, size) | sign);
}
)"},
    {"lazy_to_f16", R"(
// To nearest, ties to even; a NaN stays one.
inline unsigned short lazy_to_f16(float x) {
  const unsigned b = __builtin_bit_cast(unsigned, x), sign = (b >> 16) & 0x8000u, size = b & 0x7fffffffu;
  const unsigned normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;
  const float shifted = __builtin_bit_cast(float, size) + 0.5f;  // the addition rounds at the right bit
  const unsigned subnormal = __builtin_bit_cast(unsigned, shifted) - 0x3f000000u;
  const unsigned bits = size > 0x7f800000u ? 0x7e00u : size >= 0x47800000u ? 0x7c00u : size < 0x38800000u ? subnormal : normal;
  return (unsigned short)(bits | sign);
}
)"},
    {"lazy_round_f16", R"(
inline float lazy_round_f16(float x) { return lazy_from_f16(lazy_to_f16(x)); }
)"},
    {"lazy_lowest", R"(
template <typename T> inline T lazy_lowest() { return (T)-1 > (T)0 ? (T)0 : (T)(1ul << (8 * sizeof(T) - 1)); }
)"},
    {"lazy_highest", R"(
template <typename T> inline T lazy_highest() { return (T)-1 > (T)0 ? (T)-1 : (T)((1ul << (8 * sizeof(T) - 1)) - 1); }
)"},
    {"lazy_stream", R"(
// Copies past the caches, so that the lines written are not read first. The caller ends with lazy_streamed().
template <typename T> inline void lazy_stream(T* to, const T* from, long n) {
  long i = 0;
#if defined(__AVX512F__)
  typedef long long V __attribute__((vector_size(64)));
#elif defined(__AVX__)
  typedef long long V __attribute__((vector_size(32)));
#endif
#if defined(__AVX__)
  for (; i < n && ((unsigned long)(to + i) & (sizeof(V) - 1)) != 0; ++i) to[i] = from[i];
  for (; i + (long)(sizeof(V) / sizeof(T)) <= n; i += sizeof(V) / sizeof(T)) {
    V v;
    __builtin_memcpy(&v, from + i, sizeof v);
#if defined(__AVX512F__)
    __builtin_ia32_movntdq512((V*)(to + i), v);
#else
    __builtin_ia32_movntdq256((V*)(to + i), v);
#endif
  }
#endif
  for (; i < n; ++i) to[i] = from[i];
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_streamed", R"(
inline void lazy_streamed() {
#if defined(__AVX__)
  __builtin_ia32_sfence();
#endif
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_arg", R"(
// Keeps the best number and its index: the first of equals; a NaN is better than any number. Index -1: none yet.
template <bool kMax, typename T> inline void lazy_arg(T& best, long& at, T x, long index) {
  const bool better = x != x ? best == best : kMax ? x > best : x < best;
  const bool equal = x == best || (x != x && best != best);
  const bool take = at < 0 || (index >= 0 && (better || (equal && index < at)));
  best = take ? x : best;
  at = take ? index : at;
}
)"},
    {"lazy_max", R"(
// NaN if either is. One select for both: g++ makes slow vector code of chains that ask for each.
template <typename T> inline T lazy_max(T a, T b) { return a > b ? a : b; }
inline float lazy_max(float a, float b) {
  const float m = a > b ? a : b;
  return !(a >= b) & !(a < b) ? a + b : m;
}
inline double lazy_max(double a, double b) {
  const double m = a > b ? a : b;
  return !(a >= b) & !(a < b) ? a + b : m;
}
)"},
    {"lazy_min", R"(
template <typename T> inline T lazy_min(T a, T b) { return a < b ? a : b; }
inline float lazy_min(float a, float b) {
  const float m = a < b ? a : b;
  return !(a >= b) & !(a < b) ? a + b : m;
}
inline double lazy_min(double a, double b) {
  const double m = a < b ? a : b;
  return !(a >= b) & !(a < b) ? a + b : m;
}
)"},
    {"lazy_fold_max", R"(
// NaN if either is. The best waits for one instruction alone, which leaves it as it is where x is NaN.
template <typename T> inline T lazy_fold_max(T best, T x) {
  const T m = x > best ? x : best;
  return x != x ? x : m;
}
)"},
    {"lazy_fold_min", R"(
template <typename T> inline T lazy_fold_min(T best, T x) {
  const T m = x < best ? x : best;
  return x != x ? x : m;
}
)"},
    {"lazy_exp_polynomial", R"(
// e^r for |r| <= ln(2) / 2.
inline float lazy_exp_polynomial(float r) {
  float p = 1.37805939e-3f;
  p = __builtin_fmaf(p, r, 8.37312452e-3f);
  p = __builtin_fmaf(p, r, 4.16695364e-2f);
  p = __builtin_fmaf(p, r, 1.66664720e-1f);
  p = __builtin_fmaf(p, r, 4.99999851e-1f);
  p = __builtin_fmaf(p, r, 1.0f);
  return __builtin_fmaf(p, r, 1.0f);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_scaled", R"(
// p * 2^n for p about 1, where `t` is n + 254 + 1.5 * 2^23, whose low bits are n + 254; or n + 2046 + 1.5 * 2^52.
// Half of the power at a time: only the last product may be subnormal or overflow, and is rounded once.
inline float lazy_scaled(float p, float t) {
  const unsigned n = __builtin_bit_cast(unsigned, t), half = n >> 1;
  return p * __builtin_bit_cast(float, half << 23) * __builtin_bit_cast(float, (n - half) << 23);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp", R"(
inline float lazy_exp(float x) {
  const float y = x < -104.0f ? -104.0f : x;
  const float t = __builtin_fmaf(y, 1.44269502f, 12583166.0f), n = t - 12583166.0f;
  const float r = __builtin_fmaf(n, -1.42860677e-6f, __builtin_fmaf(n, -0.693145752f, y));
  const float p = lazy_scaled(lazy_exp_polynomial(r), t);
  return x <= 88.7228394f ? p : x + __builtin_inff();
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp_nonpositive", R"(
// e^x for x <= 0, or NaN. The power is scaled up to be a normal number; the last product rounds a subnormal one once.
inline float lazy_exp_nonpositive(float x) {
  const float y = x < -104.0f ? -104.0f : x;
  const float t = __builtin_fmaf(y, 1.44269502f, 12583103.0f), n = t - 12583103.0f;  // n + 127 + 64 in the low bits
  const float r = __builtin_fmaf(n, -1.42860677e-6f, __builtin_fmaf(n, -0.693145752f, y));
  return lazy_exp_polynomial(r) * __builtin_bit_cast(float, __builtin_bit_cast(unsigned, t) << 23) * 0x1p-64f;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp2", R"(
inline float lazy_exp2(float x) {
  const float y = x < -151.0f ? -151.0f : x;
  const float t = y + 12583166.0f, r = y - (t - 12583166.0f);
  const float p = lazy_scaled(lazy_exp_polynomial(r * 0.693147182f), t);
  return x < 128.0f ? p : x + __builtin_inff();
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_expm1_core", R"(
// e^x - 1 as 2^n * (e^r - 1) + (2^n - 1), for -30 <= x <= 88, of doubles -40 <= x <= 710; `scale` says how much smaller
// than that it is.
inline float lazy_expm1_core(float x, unsigned bias, float scale) {
  const float t = __builtin_fmaf(x, 1.44269502f, 12582912.0f), n = t - 12582912.0f;
  const float r = __builtin_fmaf(n, -1.42860677e-6f, __builtin_fmaf(n, -0.693145752f, x));
  float p = 1.97350979e-4f;
  p = __builtin_fmaf(p, r, 1.39309070e-3f);
  p = __builtin_fmaf(p, r, 8.33343994e-3f);
  p = __builtin_fmaf(p, r, 4.16668020e-2f);
  p = __builtin_fmaf(p, r, 1.66666716e-1f);
  p = __builtin_fmaf(p, r, 4.99999970e-1f);
  const float power = __builtin_bit_cast(float, (__builtin_bit_cast(unsigned, t) + bias) << 23);
  return __builtin_fmaf(power * r, p * r, __builtin_fmaf(power, r, power - scale));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_expm1", R"(
// At half size, so that the largest results do not overflow early.
inline float lazy_expm1(float x) {
  const float y = x < -30.0f ? -30.0f : x > 88.8f ? 88.8f : x;
  const float m = 2.0f * lazy_expm1_core(y, 126u, 0.5f);
  return x == 0.0f || x != x ? x : x > 88.7228394f ? __builtin_inff() : m;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log_parts", R"(
// log(m), and e of x = m * 2^e, for positive x.
inline float lazy_log_parts(float x, float* exponent) {
  const bool small = x < 1.17549435e-38f;
  const float y = small ? x * 8388608.0f : x;
  const int e = (__builtin_bit_cast(int, y) - 0x3f2aaaab) & (int)0xff800000;
  *exponent = __builtin_fmaf((float)e, 1.1920929e-7f, small ? -23.0f : 0.0f);
  const float m = __builtin_bit_cast(float, __builtin_bit_cast(int, y) - e) - 1.0f;  // in [-1/3, 1/3]
  const float s = m * m;
  float p = -0.130310059f, q = 0.140869141f;
  p = __builtin_fmaf(p, s, -0.121483512f);
  q = __builtin_fmaf(q, s, 0.139814854f);
  p = __builtin_fmaf(p, s, -0.166846126f);
  q = __builtin_fmaf(q, s, 0.200120345f);
  p = __builtin_fmaf(p, s, -0.249996200f);
  p = __builtin_fmaf(q, m, p);
  p = __builtin_fmaf(p, m, 0.333331972f);
  p = __builtin_fmaf(p, m, -0.5f);
  return __builtin_fmaf(p, s, m);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log_of", R"(
// `logarithm` is the one of x where x has one.
inline float lazy_log_of(float x, float logarithm) {
  const float special = x < 0.0f ? __builtin_nanf("") : x == 0.0f ? -__builtin_inff() : x;
  return x > 0.0f && x < __builtin_inff() ? logarithm : special;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log", R"(
inline float lazy_log(float x) {
  float n;
  const float p = lazy_log_parts(x, &n);
  return lazy_log_of(x, __builtin_fmaf(n, 0.693147182f, p));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log2", R"(
inline float lazy_log2(float x) {
  float n;
  const float p = lazy_log_parts(x, &n);
  return lazy_log_of(x, __builtin_fmaf(p, 1.44269502f, __builtin_fmaf(p, 1.92596303e-8f, n)));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log10", R"(
inline float lazy_log10(float x) {
  float n;
  const float p = lazy_log_parts(x, &n), low = __builtin_fmaf(n, 1.47348416e-8f, p * -1.01083980e-8f);
  return lazy_log_of(x, __builtin_fmaf(p, 0.434294492f, __builtin_fmaf(n, 0.301029980f, low)));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log1p", R"(
// log(1 + x) with what the sum's rounding lost.
inline float lazy_log1p(float x) {
  const float u = 1.0f + x;
  const float lost = x - (u - 1.0f);
  const float y = lazy_log(u) + (u == 0.0f ? 0.0f : lost / u);
  return u == 1.0f || u == __builtin_inff() ? x : y;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_tanh", R"(
inline float lazy_tanh(float x) {
  const float size = __builtin_fabsf(x), y = size > 9.1f ? 9.1f : size;
  const float m = lazy_expm1_core(2.0f * y, 127u, 1.0f);
  const float q = m / (m + 2.0f), half = 0.5f * m;
  const float t = m < 1.0f ? __builtin_fmaf(-half, q, half) : q;  // the same, without the rounding of m + 2
  return x == x ? __builtin_copysignf(t, x) : x;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_quarter_turn", R"(
// x less the nearest multiple of pi / 2, whose number mod 4 are the low bits of `quarter`. From 2^47 on x is a whole number
// of steps of 2^24, 2^48, ..., and stands for as many times what is left of a step after whole turns.
inline double lazy_quarter_turn(float x, unsigned* quarter) {
  const double y = x, size = __builtin_fabs(y);
  double step = 1.0, low = 0.0, steps = 1.0;
  step = size >= 0x1p47 ? -0x1.c9b6498c1137fp-1 : step, low = size >= 0x1p47 ? -0x1.2643605c762f1p-58 : low;
  step = size >= 0x1p71 ? 0x1.09f4683d25023p-3 : step, low = size >= 0x1p71 ? 0x1.fee10ecf6f246p-59 : low;
  step = size >= 0x1p95 ? 0x1.ee6639887604dp-3 : step, low = size >= 0x1p95 ? 0x1.8b437ad3f55e0p-58 : low;
  step = size >= 0x1p119 ? 0x1.89a58c41dc40cp+1 : step, low = size >= 0x1p119 ? -0x1.27745096c7eeep-53 : low;
  steps = size >= 0x1p47 ? 0x1p-24 : steps, steps = size >= 0x1p71 ? 0x1p-48 : steps;
  steps = size >= 0x1p95 ? 0x1p-72 : steps, steps = size >= 0x1p119 ? 0x1p-96 : steps;
  const double m = y * steps, angle = m * step, rest = __builtin_fma(m, step, -angle) + m * low;
  const double t = __builtin_fma(angle, 0x1.45f306dc9c883p-1, 0x1.8p52), n = t - 0x1.8p52;
  *quarter = (unsigned)__builtin_bit_cast(unsigned long, t);
  return __builtin_fma(n, -0x1.1a62633145c07p-54, __builtin_fma(n, -0x1.921fb54442d18p+0, angle) + rest);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_sin_polynomial", R"(
// For |r| <= pi / 4.
template <typename T> inline T lazy_sin_polynomial(T r) {
  const T s = r * r;
  const T p = ((2.72268527e-6f * s - 1.98399362e-4f) * s + 8.33333172e-3f) * s - 1.66666667e-1f;
  return r + p * s * r;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_cos_polynomial", R"(
template <typename T> inline T lazy_cos_polynomial(T r) {
  const T s = r * r;
  const T p = (2.44391195e-5f * s - 1.38873749e-3f) * s + 4.16666471e-2f;
  return (T)1 - s * 0.5f + p * s * s;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_sin", R"(
inline float lazy_sin(float x) {
  unsigned quarter;
  const float r = lazy_quarter_turn(x, &quarter);
  const float size = (quarter & 1u) != 0u ? lazy_cos_polynomial(r) : lazy_sin_polynomial(r);
  const float y = __builtin_bit_cast(float, __builtin_bit_cast(unsigned, size) ^ ((quarter & 2u) << 30));
  return x == 0.0f ? x : y;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_cos", R"(
inline float lazy_cos(float x) {
  unsigned quarter;
  const float r = lazy_quarter_turn(x, &quarter);
  const float size = (quarter & 1u) != 0u ? lazy_sin_polynomial(r) : lazy_cos_polynomial(r);
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, size) ^ (((quarter + 1u) & 2u) << 30));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_tan", R"(
inline float lazy_tan(float x) {
  unsigned quarter;
  const double r = lazy_quarter_turn(x, &quarter), sine = lazy_sin_polynomial(r), cosine = lazy_cos_polynomial(r);
  const float y = (quarter & 1u) != 0u ? -cosine / sine : sine / cosine;
  return x == 0.0f ? x : y;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_atan2", R"(
// The angle of the smaller side over the larger one, which lies within pi / 8 of 0 or of pi / 4, put into its octant.
inline float lazy_atan2(float y, float x) {
  const float across = __builtin_fabsf(x), up = __builtin_fabsf(y);
  const bool steep = up > across;
  const float larger = steep ? up : across, smaller = steep ? across : up;
  const double quotient = (double)smaller / (larger == 0.0f ? 1.0 : (double)larger);
  const double t = smaller == __builtin_inff() ? 1.0 : quotient;
  const bool far = t > 0.41421356237309503;
  const double u = far ? (t - 1.0) / (t + 1.0) : t;
  const float v = u, s = v * v;
  float p = -6.46475026e-2f;
  p = __builtin_fmaf(p, s, 1.07482339e-1f);
  p = __builtin_fmaf(p, s, -1.42644499e-1f);
  p = __builtin_fmaf(p, s, 1.99995579e-1f);
  p = __builtin_fmaf(p, s, -3.33333319e-1f);
  double angle = u + (double)(p * s * v) + (far ? 0.78539816339744831 : 0.0);
  angle = steep ? 1.5707963267948966 - angle : angle;
  angle = __builtin_signbit(x) ? 3.1415926535897931 - angle : angle;
  return (x != x) | (y != y) ? x + y : __builtin_copysignf((float)angle, y);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_power", R"(
// 2^(y * log2(|x|)) in double, which is enough digits for any y. "And" and "or" are of bits: g++ makes no vectors of
// conditions that are asked only sometimes.
inline float lazy_power(float x, float y) {
  const float size = __builtin_fabsf(x), infinity = __builtin_inff();
  const long bits = __builtin_bit_cast(long, (double)size), e = (bits - 0x3fe6a09e667f3bcdl) >> 52;
  const double m = __builtin_bit_cast(double, bits - (e << 52));  // in [sqrt(1/2), sqrt(2)]
  const double u = (m - 1.0) / (m + 1.0), s = u * u;
  double p = 0.3407593008759246;
  p = __builtin_fma(p, s, 0.41167113750976164);
  p = __builtin_fma(p, s, 0.57708361151544663);
  p = __builtin_fma(p, s, 0.96179667320080309);
  p = __builtin_fma(p, s, 2.8853900817901952);
  const double power = ((double)(int)e + u * p) * (double)y;
  const double z = power < -200.0 ? -200.0 : power > 200.0 ? 200.0 : power;
  const double t = z + 0x1.8p52, r = z - (t - 0x1.8p52);
  double q = 1.5478017758106116e-4;
  q = __builtin_fma(q, r, 1.3400431669743202e-3);
  q = __builtin_fma(q, r, 9.617994531122177e-3);
  q = __builtin_fma(q, r, 5.5503272157582759e-2);
  q = __builtin_fma(q, r, 0.24022651504896175);
  q = __builtin_fma(q, r, 0.69314720670965213);
  q = __builtin_fma(q, r, 0.9999999999190895);
  float v = q * __builtin_bit_cast(double, (__builtin_bit_cast(long, t) + 1023) << 52);
  const bool is_whole = __builtin_truncf(y) == y, is_odd = is_whole & (__builtin_truncf(y * 0.5f) * 2.0f != y);
  const bool is_endless = __builtin_fabsf(y) == infinity;
  v = size == 0.0f ? (y < 0.0f ? infinity : 0.0f) : v;
  v = size == infinity ? (y < 0.0f ? 0.0f : infinity) : v;
  v = is_endless ? ((size < 1.0f) == (y < 0.0f) ? infinity : 0.0f) : v;
  v = (x < 0.0f) & (size < infinity) & !is_whole ? __builtin_nanf("") : v;
  v = (__builtin_signbit(x) != 0) & is_odd ? -v : v;
  v = (x != x) | (y != y) ? x + y : v;
  return (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & is_endless) ? 1.0f : v;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_erf", R"(
// Far from 0 as 1 - e^p.
inline float lazy_erf(float x) {
  const float t = __builtin_fabsf(x), s = x * x;
  float p = __builtin_fmaf(-1.72853470e-5f, t, 3.83197126e-4f);
  const float q = __builtin_fmaf(-3.88396438e-3f, t, 2.42546219e-2f);
  p = __builtin_fmaf(p, s, q);
  p = __builtin_fmaf(p, t, -1.06777877e-1f);
  p = __builtin_fmaf(p, t, -6.34846687e-1f);
  p = __builtin_fmaf(p, t, -1.28717512e-1f);
  p = __builtin_fmaf(p, t, -t);
  const float far = __builtin_copysignf(1.0f - lazy_exp_nonpositive(t > 9.0f ? -81.0f : p), x);
  float r = -5.96761703e-4f;
  r = __builtin_fmaf(r, s, 4.99119423e-3f);
  r = __builtin_fmaf(r, s, -2.67681349e-2f);
  r = __builtin_fmaf(r, s, 1.12819925e-1f);
  r = __builtin_fmaf(r, s, -3.76125336e-1f);
  r = __builtin_fmaf(r, s, 1.28379166e-1f);
  const float near = __builtin_fmaf(r, x, x);
  return t > 0.927734375f ? far : near;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_float_mod", R"(
// C's fmod, which is exact: long division, 48 bits of the quotient at a time, each wrong by one at most. What a step leaves is
// a multiple of the divisor's last place and less than twice the divisor, so that a double holds it.
inline float lazy_float_mod(float x, float y) {
  const double size = __builtin_fabsf(x), d = __builtin_fabsf(y), inverse = 1.0 / d;
  double r = size;
  r = __builtin_fma(-__builtin_floor(r * inverse * 0x1p-240), d * 0x1p+240, r);
  r = __builtin_fma(-__builtin_floor(r * inverse * 0x1p-192), d * 0x1p+192, r);
  r = __builtin_fma(-__builtin_floor(r * inverse * 0x1p-144), d * 0x1p+144, r);
  r = __builtin_fma(-__builtin_floor(r * inverse * 0x1p-96), d * 0x1p+96, r);
  r = __builtin_fma(-__builtin_floor(r * inverse * 0x1p-48), d * 0x1p+48, r);
  r = __builtin_fma(-__builtin_floor(r * inverse), d, r);
  r = r < 0.0 ? r + d : r;
  r = r >= d ? r - d : r;
  r = (d == __builtin_inf()) & (size < __builtin_inf()) ? size : r;
  return __builtin_copysignf((float)r, x);
}
)",
     /*for_cpu_alone=*/true},
};

}  // namespace

absl::Span<const NamedFunction> FloatFunctions() { return kFloatFunctions; }

}  // namespace torch_lazy::codegen
