// SPDX-License-Identifier: Apache-2.0
// CUDA's words for the CPU's compiler. Header-free, since headers cost more than a kernel.
#include "backends/cuda_emulator/wrap.h"

namespace torch_lazy::backends {

const char kPrelude[] = R"prelude(
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

static LazyBlock* lazy_block;
typedef LazyIndex uint3;
#define threadIdx (lazy_block->thread)
#define blockIdx (lazy_block->index)
#define blockDim (lazy_block->threads)
#define gridDim (lazy_block->blocks)
#define warpSize 32
struct dim3 { unsigned x = 1, y = 1, z = 1; };

template <typename A> static inline void lazy_call_one(void (*f)(A), const void* a) {
  f(*(const A*)a);
}
template <typename A>
static inline void lazy_call_many(void (*f)(const A*, const int*, int), const void* t,
                                  const int* first, int n) {
  f((const A*)t, first, n);
}

typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long long longlong;
typedef unsigned long long ulonglong;
#define LAZY_VECTOR(T, N, A2, A4)                                                              \
  struct alignas(A2) N##2 { T x, y; };                                                         \
  struct alignas(A4) N##4 { T x, y, z, w; };                                                   \
  static inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                  \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
LAZY_VECTOR(schar, char, 2, 4)
LAZY_VECTOR(uchar, uchar, 2, 4)
LAZY_VECTOR(short, short, 4, 8)
LAZY_VECTOR(ushort, ushort, 4, 8)
LAZY_VECTOR(int, int, 8, 16)
LAZY_VECTOR(uint, uint, 8, 16)
LAZY_VECTOR(long, long, 16, 16)
LAZY_VECTOR(ulong, ulong, 16, 16)
LAZY_VECTOR(longlong, longlong, 16, 16)
LAZY_VECTOR(ulonglong, ulonglong, 16, 16)
LAZY_VECTOR(float, float, 8, 16)
LAZY_VECTOR(double, double, 16, 16)

// Bits.
template <typename To, typename From> static inline To lazy_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the sizes differ");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
static inline int __float_as_int(float x) { return lazy_bits<int>(x); }
static inline uint __float_as_uint(float x) { return lazy_bits<uint>(x); }
static inline float __int_as_float(int x) { return lazy_bits<float>(x); }
static inline float __uint_as_float(uint x) { return lazy_bits<float>(x); }
static inline longlong __double_as_longlong(double x) { return lazy_bits<longlong>(x); }
static inline double __longlong_as_double(longlong x) { return lazy_bits<double>(x); }
static inline int __popc(uint x) { return __builtin_popcount(x); }
static inline int __popcll(ulonglong x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((uint)x); }
static inline int __clzll(longlong x) { return x == 0 ? 64 : __builtin_clzll((ulonglong)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(longlong x) { return __builtin_ffsll(x); }
static inline uint __brev(uint x) {
  uint r = 0;
  for (int k = 0; k < 32; ++k) r |= (x >> k & 1) << (31 - k);
  return r;
}
static inline int __mulhi(int x, int y) { return (int)((longlong)x * y >> 32); }
static inline uint __umulhi(uint x, uint y) { return (uint)((ulonglong)x * y >> 32); }
static inline longlong __mul64hi(longlong x, longlong y) {
  return (longlong)((__int128)x * y >> 64);
}
static inline ulonglong __umul64hi(ulonglong x, ulonglong y) {
  return (ulonglong)((unsigned __int128)x * y >> 64);
}

// Mathematics.
#define LAZY_MATH(F)                                                                            \
  extern "C" double F(double) noexcept;                                                         \
  extern "C" float F##f(float) noexcept;                                                        \
  static inline float F(float x) { return F##f(x); }
LAZY_MATH(exp) LAZY_MATH(exp2) LAZY_MATH(exp10) LAZY_MATH(expm1) LAZY_MATH(log) LAZY_MATH(log2)
LAZY_MATH(log10) LAZY_MATH(log1p) LAZY_MATH(sqrt) LAZY_MATH(cbrt) LAZY_MATH(sin) LAZY_MATH(cos)
LAZY_MATH(tan) LAZY_MATH(asin) LAZY_MATH(acos) LAZY_MATH(atan) LAZY_MATH(sinh) LAZY_MATH(cosh)
LAZY_MATH(tanh) LAZY_MATH(asinh) LAZY_MATH(acosh) LAZY_MATH(atanh) LAZY_MATH(erf) LAZY_MATH(erfc)
LAZY_MATH(tgamma) LAZY_MATH(lgamma) LAZY_MATH(floor) LAZY_MATH(ceil) LAZY_MATH(trunc)
LAZY_MATH(round) LAZY_MATH(rint) LAZY_MATH(nearbyint) LAZY_MATH(fabs)
#define LAZY_MATH2(F)                                                                           \
  extern "C" double F(double, double) noexcept;                                                 \
  extern "C" float F##f(float, float) noexcept;                                                 \
  static inline float F(float x, float y) { return F##f(x, y); }
LAZY_MATH2(pow) LAZY_MATH2(fmod) LAZY_MATH2(atan2) LAZY_MATH2(fmin) LAZY_MATH2(fmax)
LAZY_MATH2(copysign) LAZY_MATH2(hypot) LAZY_MATH2(remainder) LAZY_MATH2(nextafter) LAZY_MATH2(fdim)
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
static inline float ldexp(float x, int e) { return ldexpf(x, e); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#define LAZY_TEST(F)                                                                            \
  static inline bool F(float x) { return __builtin_##F(x); }                                    \
  static inline bool F(double x) { return __builtin_##F(x); }
LAZY_TEST(isnan) LAZY_TEST(isinf) LAZY_TEST(isfinite) LAZY_TEST(signbit)
#define LAZY_MINMAX(T)                                                                          \
  static inline T min(T x, T y) { return y < x ? y : x; }                                       \
  static inline T max(T x, T y) { return x < y ? y : x; }
LAZY_MINMAX(int) LAZY_MINMAX(uint) LAZY_MINMAX(long) LAZY_MINMAX(ulong)
LAZY_MINMAX(longlong) LAZY_MINMAX(ulonglong)
static inline float min(float x, float y) { return fminf(x, y); }
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
extern "C" int abs(int) noexcept;
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline longlong abs(longlong x) { return x < 0 ? -x : x; }
static inline longlong llabs(longlong x) { return abs(x); }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __sinf sinf
#define __cosf cosf
#define __powf powf
#define __frsqrt_rn rsqrtf
#define LAZY_ROUNDED(T, P, S)                                                                   \
  static inline T P##add_rn(T x, T y) { return x + y; }                                         \
  static inline T P##sub_rn(T x, T y) { return x - y; }                                         \
  static inline T P##mul_rn(T x, T y) { return x * y; }                                         \
  static inline T P##div_rn(T x, T y) { return x / y; }                                         \
  static inline T P##rcp_rn(T x) { return (T)1 / x; }                                           \
  static inline T P##sqrt_rn(T x) { return sqrt(x); }
LAZY_ROUNDED(float, __f, f)
LAZY_ROUNDED(double, __d, )
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// Conversions: out of range is the nearest, NaN is 0 (the smallest number for 64 bits).
template <typename T> static inline T lazy_to_integer(double x) {
  const T top = (T)-1 > 0 ? (T)-1 : (T)(((ulong)1 << (8 * sizeof(T) - 1)) - 1);
  const T bottom = (T)-1 > 0 ? 0 : (T)(-top - 1);
  if (x != x) return sizeof(T) == 8 ? (T)((ulong)1 << 63) : 0;
  if (x <= (double)bottom) return bottom;
  return x >= (double)top ? top : (T)x;
}
#define LAZY_CONVERT(T, N)                                                                      \
  static inline T __float2##N##_rz(float x) { return lazy_to_integer<T>(truncf(x)); }           \
  static inline T __float2##N##_rn(float x) { return lazy_to_integer<T>(rintf(x)); }            \
  static inline T __float2##N##_ru(float x) { return lazy_to_integer<T>(ceilf(x)); }            \
  static inline T __float2##N##_rd(float x) { return lazy_to_integer<T>(floorf(x)); }           \
  static inline T __double2##N##_rz(double x) { return lazy_to_integer<T>(trunc(x)); }          \
  static inline T __double2##N##_rn(double x) { return lazy_to_integer<T>(rint(x)); }           \
  static inline T __double2##N##_ru(double x) { return lazy_to_integer<T>(ceil(x)); }           \
  static inline T __double2##N##_rd(double x) { return lazy_to_integer<T>(floor(x)); }          \
  static inline float __##N##2float_rn(T x) { return (float)x; }                                \
  static inline double __##N##2double_rn(T x) { return (double)x; }
LAZY_CONVERT(int, int)
LAZY_CONVERT(uint, uint)
LAZY_CONVERT(longlong, ll)
LAZY_CONVERT(ulonglong, ull)
static inline float __double2float_rn(double x) { return (float)x; }
static inline longlong llrint(double x) { return __double2ll_rn(x); }
static inline longlong llrintf(float x) { return __float2ll_rn(x); }

// Memory.
template <typename T> static inline T __ldg(const T* p) { return *p; }
template <typename T> static inline T __ldcg(const T* p) { return *p; }
template <typename T> static inline T __ldca(const T* p) { return *p; }
template <typename T> static inline T __ldcs(const T* p) { return *p; }
template <typename T> static inline T __ldlu(const T* p) { return *p; }
template <typename T> static inline void __stwb(T* p, T v) { *p = v; }
template <typename T> static inline void __stcg(T* p, T v) { *p = v; }
template <typename T> static inline void __stcs(T* p, T v) { *p = v; }
template <typename T> static inline void __stwt(T* p, T v) { *p = v; }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
#define LAZY_ATOMIC(T)                                                                          \
  static inline T atomicAdd(T* p, T v) { T o = *p; *p = o + v; return o; }                      \
  static inline T atomicExch(T* p, T v) { T o = *p; *p = v; return o; }
#define LAZY_ATOMIC_INTEGER(T)                                                                  \
  LAZY_ATOMIC(T)                                                                                \
  static inline T atomicMin(T* p, T v) { T o = *p; *p = min(o, v); return o; }                  \
  static inline T atomicMax(T* p, T v) { T o = *p; *p = max(o, v); return o; }                  \
  static inline T atomicOr(T* p, T v) { T o = *p; *p = o | v; return o; }                       \
  static inline T atomicAnd(T* p, T v) { T o = *p; *p = o & v; return o; }                      \
  static inline T atomicCAS(T* p, T c, T v) { T o = *p; if (o == c) *p = v; return o; }
LAZY_ATOMIC(float) LAZY_ATOMIC(double)
LAZY_ATOMIC_INTEGER(int) LAZY_ATOMIC_INTEGER(uint) LAZY_ATOMIC_INTEGER(ulonglong)

#define __trap() lazy_block->trap(lazy_block, __LINE__)

// Waiting. A lane that takes no part has no value to give: the emulator gives garbage.
#define __syncthreads() lazy_block->barrier(lazy_block, __LINE__)
#define LAZY_EXCHANGE(kind, mask, value, source, line) \
  lazy_block->exchange(lazy_block, kind, mask, value, source, line)
static inline void lazy_sync(int line, uint mask = 0xffffffffu) {
  LAZY_EXCHANGE(kLazySync, mask, 0, 0, line);
}
static inline uint lazy_ballot(int line, uint mask, bool value) {
  return (uint)LAZY_EXCHANGE(kLazyBallot, mask, value, 0, line);
}
template <typename T> static inline T lazy_shuffle(int line, uint mask, T value, int source) {
  static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
  ulong bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = LAZY_EXCHANGE(kLazyShuffle, mask, bits, source, line);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
static inline int lazy_lane() { return threadIdx.x & 31; }
template <typename T>
static inline T lazy_shfl(int line, uint mask, T value, int source, int width = 32) {
  const int first = lazy_lane() & -width;
  return lazy_shuffle(line, mask, value, first | (source & (width - 1)));
}
template <typename T>
static inline T lazy_shfl_up(int line, uint mask, T value, uint by, int width = 32) {
  const int lane = lazy_lane(), from = lane - (int)by;
  return lazy_shuffle(line, mask, value, from < (lane & -width) ? lane : from);
}
template <typename T>
static inline T lazy_shfl_down(int line, uint mask, T value, uint by, int width = 32) {
  const int lane = lazy_lane(), from = lane + (int)by;
  return lazy_shuffle(line, mask, value, from > (lane | (width - 1)) ? lane : from);
}
template <typename T>
static inline T lazy_shfl_xor(int line, uint mask, T value, int by, int width = 32) {
  const int lane = lazy_lane(), from = lane ^ by;
  return lazy_shuffle(line, mask, value, from > (lane | (width - 1)) ? lane : from);
}
#define __syncwarp(...) lazy_sync(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __ballot_sync(...) lazy_ballot(__LINE__, __VA_ARGS__)
#define __any_sync(...) (lazy_ballot(__LINE__, __VA_ARGS__) != 0)
#define __all_sync(mask, value) (lazy_ballot(__LINE__, mask, !(value)) == 0)
#define __shfl_sync(...) lazy_shfl(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) lazy_shfl_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) lazy_shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) lazy_shfl_xor(__LINE__, __VA_ARGS__)
)prelude";

}  // namespace torch_lazy::backends
