// SPDX-License-Identifier: Apache-2.0
// Transcendental functions are those of CUDA's own library, which PyTorch's kernels call, too.
// Functions that do not depend on the machine are the CPU's, in CUDA's words.
#include "codegen/cuda/math_text.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/kernels/math_text.h"

namespace torch_lazy::codegen::cuda {
namespace {

// In an order in which each uses only earlier ones.
constexpr NamedFunction kFunctions[] = {
    {"lazy_inf", R"(
inline double lazy_inf() { return __builtin_bit_cast(double, 0x7ff0000000000000ul); }
)"},
    {"lazy_nan", R"(
inline double lazy_nan(const char*) { return __builtin_bit_cast(double, 0x7ff8000000000000ul); }
)"},
    {"lazy_index", R"(
// rest % extent, and rest becomes rest / extent. 64-bit division is slow.
inline long lazy_index(long& rest, long extent) {
  if ((unsigned long)(rest | extent) >> 32 == 0) {
    const unsigned n = (unsigned)rest, d = (unsigned)extent, q = n / d;
    rest = q;
    return n - q * d;
  }
  const long q = rest / extent, index = rest - q * extent;
  rest = q;
  return index;
}
)"},
    {"lazy_pack", R"(
// What is read and written at once.
template <typename T, int N> struct alignas(N * sizeof(T)) lazy_pack { T x[N]; };
)"},
    {"lazy_read", R"(
// Numbers side by side, aligned to all of their bytes or to 16.
template <typename T, int V> inline void lazy_read(T (&to)[V], const T* from) {
  constexpr int kPack = V * sizeof(T) <= 16 ? V : 16 / sizeof(T);
#pragma unroll
  for (int k = 0; k < V; k += kPack) {
    const lazy_pack<T, kPack> pack = *(const lazy_pack<T, kPack>*)(from + k);
#pragma unroll
    for (int i = 0; i < kPack; ++i) to[k + i] = pack.x[i];
  }
}
)"},
    {"lazy_write", R"(
template <typename T, int V> inline void lazy_write(T* to, const T (&from)[V]) {
  constexpr int kPack = V * sizeof(T) <= 16 ? V : 16 / sizeof(T);
#pragma unroll
  for (int k = 0; k < V; k += kPack) {
    lazy_pack<T, kPack> pack;
#pragma unroll
    for (int i = 0; i < kPack; ++i) pack.x[i] = from[k + i];
    *(lazy_pack<T, kPack>*)(to + k) = pack;
  }
}
)"},
    {"lazy_fetch", R"(
// Copies V numbers into shared memory, where they are once lazy_fetched() has returned to the thread that fetched them.
template <int V, typename T> inline void lazy_fetch(T* to, const T* from) {
  constexpr int kBytes = V * sizeof(T) <= 16 ? V * sizeof(T) : 16;
#ifdef __CUDA_ARCH__
  if constexpr (kBytes == 16) {
#pragma unroll
    for (int k = 0; k < V; k += kBytes / sizeof(T))
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"((unsigned)__cvta_generic_to_shared(to + k)), "l"(from + k) : "memory");
    return;
  }
  if constexpr (kBytes == 8 || kBytes == 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(kBytes) : "memory");
    return;
  }
#endif
  for (int k = 0; k < V; ++k) to[k] = from[k];
}
inline void lazy_fetched() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}
)"},
    {"lazy_has_bulk", R"(
// Copies by one thread of N numbers side by side into shared memory, of a multiple of 16 bytes (PTX ISA: cp.async.bulk). They are
// there once lazy_bulk_wait() has returned to a thread, which all call in turn with phases 0, 1, 0, ...
inline constexpr bool lazy_has_bulk() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  return true;
#else
  return false;
#endif
}
#ifdef __CUDA_ARCH__
inline unsigned lazy_shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
#endif
inline void lazy_bulk_init(unsigned long* arrived) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(lazy_shared_address(arrived)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}
inline void lazy_bulk_expect(unsigned long* arrived, unsigned long bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(lazy_shared_address(arrived)), "r"((unsigned)bytes) : "memory");
#endif
}
template <typename T> inline void lazy_bulk_fetch(T* to, const T* from, long n, unsigned long* arrived) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" : : "r"(lazy_shared_address(to)), "l"(from), "r"((unsigned)(n * sizeof(T))), "r"(lazy_shared_address(arrived)) : "memory");
#elif !defined(__CUDA_ARCH__)
  for (long k = 0; k < n; ++k) to[k] = from[k];
#endif
}
inline void lazy_bulk_wait(unsigned long* arrived, unsigned phase) {
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra again;\n}" : : "r"(lazy_shared_address(arrived)), "r"(phase) : "memory");
#elif !defined(__CUDA_ARCH__)
  __syncthreads();
#endif
}
)"},
    {"lazy_await_former", R"(
// Returns once the stream's former kernel has ended and what it wrote is seen. The next one's blocks may begin then, and wait
// here in turn (PTX ISA: griddepcontrol).
inline void lazy_await_former() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}
)"},
    {"lazy_add_up", R"(
// Adds floats to doubles, or puts them there if they are the first; they become 0.
template <int V> inline void lazy_add_up(double* to, float (&from)[V], bool is_first) {
  double sums[V] = {};
  if (!is_first) lazy_read(sums, (const double*)to);
#pragma unroll
  for (int k = 0; k < V; ++k) sums[k] += from[k], from[k] = 0;
  lazy_write(to, sums);
}
)"},
    {"lazy_max_number", R"(
// b may be NaN, a is none.
inline float lazy_max_number(float a, float b) { return fmaxf(a, b); }
)"},
    {"lazy_exp", R"(
inline float lazy_exp(float x) { return expf(x); }
inline double lazy_exp(double x) { return exp(x); }
)"},
    {"lazy_exp_nonpositive", R"(
inline float lazy_exp_nonpositive(float x) { return expf(x); }
inline double lazy_exp_nonpositive(double x) { return exp(x); }
)"},
    {"lazy_exp_of_half", R"(
// Of what is then rounded to 16 bits: 1.5e-7 |x| and 2e-7 off, relative; 0 below 1.2e-38.
inline float lazy_exp_of_half(float x) {
  const float power = x * 1.44269504f;
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(power));
  return y;
#else
  return exp2f(power);
#endif
}
)"},
    {"lazy_one_plus_erf_of_bf16", R"(
// Of what is then rounded to bf16: 1 + erf(x), 5e-6 off, relative, also where it is small. There it
// is exp(-x^2) times a polynomial in 1 / (1 + a |x|), as in Abramowitz and Stegun, 7.1.26, here fitted
// for the least relative error.
inline float lazy_one_plus_erf_of_bf16(float x) {
  const float z = fmaf(0.438406204f, fabsf(x), 1.0f);
#ifdef __CUDA_ARCH__
  float u;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(u) : "f"(z));
#else
  const float u = 1.0f / z;
#endif
  float tail = -0.147848037f;
  tail = fmaf(tail, u, 0.36087052f);
  tail = fmaf(tail, u, 0.0315236015f);
  tail = fmaf(tail, u, 0.266840987f);
  tail = fmaf(tail, u, 0.240887392f);
  tail = fmaf(tail, u, 0.247720923f) * (u * lazy_exp_of_half(-x * x));
  return x < 0.0f ? tail : 2.0f - tail;
}
)"},
    {"lazy_exp2", R"(
inline float lazy_exp2(float x) { return exp2f(x); }
inline double lazy_exp2(double x) { return exp2(x); }
)"},
    {"lazy_expm1", R"(
inline float lazy_expm1(float x) { return expm1f(x); }
inline double lazy_expm1(double x) { return expm1(x); }
)"},
    {"lazy_log", R"(
inline float lazy_log(float x) { return logf(x); }
inline double lazy_log(double x) { return log(x); }
)"},
    {"lazy_log1p", R"(
inline float lazy_log1p(float x) { return log1pf(x); }
inline double lazy_log1p(double x) { return log1p(x); }
)"},
    {"lazy_tanh", R"(
inline float lazy_tanh(float x) { return tanhf(x); }
inline double lazy_tanh(double x) { return tanh(x); }
)"},
    {"lazy_log2", R"(
inline float lazy_log2(float x) { return log2f(x); }
inline double lazy_log2(double x) { return log2(x); }
)"},
    {"lazy_log10", R"(
inline float lazy_log10(float x) { return log10f(x); }
inline double lazy_log10(double x) { return log10(x); }
)"},
    {"lazy_sin", R"(
inline float lazy_sin(float x) { return sinf(x); }
inline double lazy_sin(double x) { return sin(x); }
)"},
    {"lazy_cos", R"(
inline float lazy_cos(float x) { return cosf(x); }
inline double lazy_cos(double x) { return cos(x); }
)"},
    {"lazy_tan", R"(
inline float lazy_tan(float x) { return tanf(x); }
inline double lazy_tan(double x) { return tan(x); }
)"},
    {"lazy_atan2", R"(
inline float lazy_atan2(float y, float x) { return atan2f(y, x); }
inline double lazy_atan2(double y, double x) { return atan2(y, x); }
)"},
    {"lazy_float_mod", R"(
inline float lazy_float_mod(float x, float y) { return fmodf(x, y); }
inline double lazy_float_mod(double x, double y) { return fmod(x, y); }
)"},
    {"lazy_power", R"(
inline float lazy_power(float x, float y) { return powf(x, y); }
inline double lazy_power(double x, double y) { return pow(x, y); }
)"},
    {"lazy_erf", R"(
inline float lazy_erf(float x) { return erff(x); }
inline double lazy_erf(double x) { return erf(x); }
)"},
};

// Of floats that are kept as 16 bits: rounded in pairs, which is one instruction. After the CPU's.
constexpr NamedFunction kWrites[] = {
    {"lazy_bf16_pair", R"(
inline unsigned lazy_bf16_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  return lazy_bf16_bits(low) | lazy_bf16_bits(high) << 16;
#endif
}
)"},
    {"lazy_f16_pair", R"(
inline unsigned lazy_f16_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  unsigned y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
#else
  return lazy_to_f16(low) | (unsigned)lazy_to_f16(high) << 16;
#endif
}
)"},
};

// V numbers that follow each other, of either type.
constexpr char kWriteHalf[] = R"(
template <int V> inline void lazy_write_HALF(unsigned short* to, const float (&from)[V]) {
  unsigned short rounded[V];
#pragma unroll
  for (int k = 0; k < V; k += 2) {
    const unsigned pair = lazy_HALF_pair(from[k], k + 1 < V ? from[k + 1] : 0.0f);
    rounded[k] = (unsigned short)pair;
    if (k + 1 < V) rounded[k + 1] = (unsigned short)(pair >> 16);
  }
  lazy_write(to, rounded);
}
)";

// One instruction where the CPU's text takes several; that one still serves whoever compiles the
// text for another machine.
constexpr NamedFunction kNative[] = {
    // Of a pair: a multiprocessor does eight times as many of these as of single ones.
    {"lazy_bf16_bits", R"(
inline unsigned lazy_bf16_bits(float x) {
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(0.0f), "f"(x));
  return y;
}
)"},
    {"lazy_high_product", R"(
inline unsigned lazy_high_product(unsigned a, unsigned b) { return __umulhi(a, b); }
)"},
    {"lazy_max", R"(
template <typename T> inline T lazy_max(T a, T b) {
  const T m = a > b ? a : b;
  return a != a ? a : m;
}
inline float lazy_max(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
)"},
    {"lazy_min", R"(
template <typename T> inline T lazy_min(T a, T b) {
  const T m = a < b ? a : b;
  return a != a ? a : m;
}
inline float lazy_min(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
)"},
    {"lazy_from_f16", R"(
inline float lazy_from_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
)"},
    {"lazy_to_f16", R"(
inline unsigned short lazy_to_f16(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
)"},
};

std::string InCudasWords(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"inline ", "static __device__ __forceinline__ "},
                                    {"__builtin_bit_cast", "__builtin_bit_cast"},
                                    {"__builtin_", ""}});
}

// All of them, made once.
class Functions {
 public:
  Functions() {
    for (const NamedFunction& function : kFunctions) Add(function.name, function.text);
    for (const NamedFunction& function : MathFunctions()) {
      if (!function.for_cpu_alone) Add(function.name, WithNative(function));
    }
    for (const NamedFunction& function : kWrites) Add(function.name, function.text);
    Add("lazy_write_bf16", absl::StrReplaceAll(kWriteHalf, {{"HALF", "bf16"}}));
    Add("lazy_write_f16", absl::StrReplaceAll(kWriteHalf, {{"HALF", "f16"}}));
  }
  absl::Span<const NamedFunction> all() const { return all_; }

 private:
  void Add(const char* name, absl::string_view text) {
    texts_.push_back(InCudasWords(text));
    all_.push_back({name, texts_.back().c_str()});
  }

  static std::string WithNative(const NamedFunction& function) {
    for (const NamedFunction& native : kNative) {
      if (native.name == absl::string_view(function.name))
        return absl::StrCat("\n#ifdef __CUDA_ARCH__", native.text, "#else", function.text, "#endif\n");
    }
    return function.text;
  }

  std::deque<std::string> texts_;  // whose characters stay where they are
  std::vector<NamedFunction> all_;
};

}  // namespace

std::string MathFunctionsFor(const std::string& code) {
  static const Functions* const functions = new Functions;
  return FunctionsFor(functions->all(), code, /*guarded=*/false);
}

}  // namespace torch_lazy::codegen::cuda
