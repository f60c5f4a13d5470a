// SPDX-License-Identifier: Apache-2.0
// Transcendental functions of doubles, beside those of floats. They are told to be inlined: g++ takes
// some of them for too long, and calls make no vectors.
#include "codegen/kernels/double_functions.h"

namespace torch_lazy::codegen {
namespace {

constexpr NamedFunction kDoubleFunctions[] = {
    {"lazy_exp_series", R"(
// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
inline __attribute__((always_inline)) double lazy_exp_series(double r) {
  const double s = r * r;
  double p = 0x1.1f956afe114b8p-29, q = 0x1.af5ec019c90ecp-26;
  p = __builtin_fma(p, s, 0x1.27e4c59b9d998p-22);
  q = __builtin_fma(q, s, 0x1.71ddf852fee9ep-19);
  p = __builtin_fma(p, s, 0x1.a01a01b0b95dfp-16);
  q = __builtin_fma(q, s, 0x1.a01a01afe5669p-13);
  p = __builtin_fma(p, s, 0x1.6c16c16c1444cp-10);
  q = __builtin_fma(q, s, 0x1.111111110f6aep-7);
  p = __builtin_fma(p, s, 0x1.555555555555ap-5);
  q = __builtin_fma(q, s, 0x1.5555555555559p-3);
  p = __builtin_fma(p, s, 0.5);
  return __builtin_fma(q, r, p);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp_polynomial", R"(
inline __attribute__((always_inline)) double lazy_exp_polynomial(double r) {
  return 1.0 + __builtin_fma(lazy_exp_series(r) * r, r, r);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_scaled", R"(
inline __attribute__((always_inline)) double lazy_scaled(double p, double t) {
  const unsigned long n = __builtin_bit_cast(unsigned long, t), half = n >> 1;
  return p * __builtin_bit_cast(double, half << 52) * __builtin_bit_cast(double, (n - half) << 52);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp", R"(
inline __attribute__((always_inline)) double lazy_exp(double x) {
  const double y = x < -746.0 ? -746.0 : x;
  const double t = __builtin_fma(y, 0x1.71547652b82fep+0, 6755399441057790.0), n = t - 6755399441057790.0;
  const double r = __builtin_fma(n, -0x1.ef35793c7673p-45, __builtin_fma(n, -0x1.62e42fefa38p-1, y));
  const double p = lazy_scaled(lazy_exp_polynomial(r), t);
  return x <= 709.78271289338397 ? p : x + __builtin_inf();
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp_nonpositive", R"(
inline __attribute__((always_inline)) double lazy_exp_nonpositive(double x) {
  const double y = x < -746.0 ? -746.0 : x;
  const double t = __builtin_fma(y, 0x1.71547652b82fep+0, 6755399441056895.0), n = t - 6755399441056895.0;
  const double r = __builtin_fma(n, -0x1.ef35793c7673p-45, __builtin_fma(n, -0x1.62e42fefa38p-1, y));
  return lazy_exp_polynomial(r) * __builtin_bit_cast(double, __builtin_bit_cast(unsigned long, t) << 52) * 0x1p-128;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp2", R"(
inline __attribute__((always_inline)) double lazy_exp2(double x) {
  const double y = x < -1076.0 ? -1076.0 : x;
  const double t = y + 6755399441057790.0, r = y - (t - 6755399441057790.0);
  const double p = lazy_scaled(lazy_exp_polynomial(r * 0x1.62e42fefa39efp-1), t);
  return x < 1024.0 ? p : x + __builtin_inf();
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_expm1_core", R"(
// As the sum of two numbers; the rounding of r is mended, as in fdlibm.
inline __attribute__((always_inline)) double lazy_expm1_core(double x, unsigned long bias, double scale, double* low) {
  const double t = __builtin_fma(x, 0x1.71547652b82fep+0, 0x1.8p52), n = t - 0x1.8p52;
  const double rest = __builtin_fma(n, -0x1.62e42fefa38p-1, x);
  const double r = __builtin_fma(n, -0x1.ef35793c7673p-45, rest);
  const double lost = __builtin_fma(n, -0x1.ef35793c7673p-45, rest - r);
  const double power = __builtin_bit_cast(double, (__builtin_bit_cast(unsigned long, t) + bias) << 52);
  *low = power * __builtin_fma(lazy_exp_series(r) * r, r, lost);
  return __builtin_fma(power, r, power - scale);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_expm1", R"(
inline __attribute__((always_inline)) double lazy_expm1(double x) {
  const double y = x < -40.0 ? -40.0 : x > 710.0 ? 710.0 : x;
  double low;
  const double high = lazy_expm1_core(y, 1022ul, 0.5, &low), m = 2.0 * (high + low);
  return (__builtin_fabs(x) < 0x1p-54) | (x != x) ? x : x > 709.78271289338397 ? __builtin_inf() : m;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log_reduced", R"(
// m - 1 for positive x = m * 2^n with m in [sqrt(1/2), sqrt(2)]; also n, and as `unit` 2^(1 - n) where x is normal.
inline __attribute__((always_inline)) double lazy_log_reduced(double x, double* n, double* unit) {
  const double up = x < 0x1p-1022 ? 0x1p54 : 1.0;
  const unsigned long b = __builtin_bit_cast(unsigned long, x * up) + 0x00095f619980c433ul, e = b >> 52;
  const unsigned long zero = __builtin_bit_cast(unsigned long, up) >> 52;
  *n = __builtin_bit_cast(double, e | 0x4330000000000000ul) - __builtin_bit_cast(double, zero | 0x4330000000000000ul);
  *unit = __builtin_bit_cast(double, (0x7fful - e) << 52);
  return __builtin_bit_cast(double, (b & 0x000ffffffffffffful) + 0x3fe6a09e667f3bcdul) - 1.0;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log_series", R"(
// log(1 + f) for f of lazy_log_reduced, as the sum of two numbers: by s = f / (2 + f), as in fdlibm.
inline __attribute__((always_inline)) double lazy_log_series(double f, double* low) {
  const double s = f / (2.0 + f), z = s * s, half = 0.5 * f;
  double p = 0x1.2eac0201bd881p-3;
  p = __builtin_fma(p, z, 0x1.39ab7b4dba03fp-3);
  p = __builtin_fma(p, z, 0x1.7465d2ef488a5p-3);
  p = __builtin_fma(p, z, 0x1.c71c5460fb51ap-3);
  p = __builtin_fma(p, z, 0x1.2492493e8e59cp-2);
  p = __builtin_fma(p, z, 0x1.999999998493bp-2);
  p = __builtin_fma(p, z, 0x1.555555555557fp-1);
  const double high = __builtin_fma(-half, f, f);
  *low = __builtin_fma(s, __builtin_fma(p, z, half * f), __builtin_fma(-half, f, f - high));
  return high;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log_sum", R"(
// n * step + p, rounded once: `step` is so short that n * step is exact, `step_low` and `p_low` are what they lack.
inline __attribute__((always_inline)) double lazy_log_sum(double n, double step, double step_low, double p,
                                                          double p_low) {
  const double whole = n * step, sum = whole + p;
  return sum + (whole - sum + p + __builtin_fma(n, step_low, p_low));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log_scaled", R"(
// log(x) * (scale + scale_low) for positive x, where `step` and `step_low` are log(2) times that.
inline __attribute__((always_inline)) double lazy_log_scaled(double x, double scale, double scale_low, double step,
                                                             double step_low) {
  double n, unit, low;
  const double high = lazy_log_series(lazy_log_reduced(x, &n, &unit), &low), p = high * scale;
  const double p_low = __builtin_fma(high, scale, -p) + __builtin_fma(high, scale_low, low * scale);
  return lazy_log_sum(n, step, step_low, p, p_low);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log_of", R"(
inline __attribute__((always_inline)) double lazy_log_of(double x, double logarithm) {
  const double special = x < 0.0 ? __builtin_nan("") : x == 0.0 ? -__builtin_inf() : x;
  return (x > 0.0) & (x < __builtin_inf()) ? logarithm : special;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log", R"(
inline __attribute__((always_inline)) double lazy_log(double x) {
  double n, unit, low;
  const double high = lazy_log_series(lazy_log_reduced(x, &n, &unit), &low);
  return lazy_log_of(x, lazy_log_sum(n, 0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45, high, low));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log2", R"(
inline __attribute__((always_inline)) double lazy_log2(double x) {
  return lazy_log_of(x, lazy_log_scaled(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1.0, 0.0));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log10", R"(
inline __attribute__((always_inline)) double lazy_log10(double x) {
  return lazy_log_of(x, lazy_log_scaled(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509f8p-2,
                                        -0x1.80433b83b532ap-44));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log1p", R"(
inline __attribute__((always_inline)) double lazy_log1p(double x) {
  const double u = 1.0 + x;
  double n, unit, low;
  const double m = lazy_log_reduced(u, &n, &unit), lost = 0.5 * (x - (u - 1.0)) * unit, f = m + lost;
  const double high = lazy_log_series(f, &low);
  const double y = lazy_log_sum(n, 0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45, high, low + (m - f + lost));
  return __builtin_fabs(x) < 0x1p-54 ? x : lazy_log_of(u, y);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_tanh", R"(
inline __attribute__((always_inline)) double lazy_tanh(double x) {
  const double size = __builtin_fabs(x), y = size > 19.1 ? 19.1 : size;
  double low;
  const double high = lazy_expm1_core(2.0 * y, 1023ul, 1.0, &low), m = high + low, lost = high - m + low;
  const double inverse = 1.0 / (m + 2.0), half = 0.5 * m;
  const double rounded = m < 1.75 ? __builtin_fma(-half, m * inverse, half) : 1.0 - 2.0 * inverse;
  const double t = __builtin_fma(lost, 2.0 * inverse * inverse, rounded);
  return x == x ? __builtin_copysign(t, x) : x;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_two_sum", R"(
// a + b, and what its rounding lost.
inline __attribute__((always_inline)) double lazy_two_sum(double a, double b, double* lost) {
  const double sum = a + b, part = sum - a;
  *lost = (a - (sum - part)) + (b - part);
  return sum;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_modulo_4", R"(
inline __attribute__((always_inline)) double lazy_modulo_4(double x) {
  return __builtin_fma(__builtin_rint(x * 0.25), -4.0, x);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_quarter_turn_of", R"(
// 2^(32 k) * 2 / pi modulo 4 as the sum of four numbers: the first ones of k = 0, 1, ..., 30, then the second ones.
static const double lazy_turns_of_steps[124] = {
    0x1.45f306dc9c883p-1, -0x1.b1bbead603d8bp+0, 0x1.fc2757d1f534ep+0, 0x1.f534ddc0db629p+0, 0x1.b6c52b3278872p-1,
    0x1.3c439041fe516p+0, 0x1.fe5163abdebbcp+0, -0x1.0a21d4f246dc9p-3, 0x1.b7246e3a424ddp+0, -0x1.bdb22d1ff9b6dp+0,
    0x1.924bba8274648p-6, -0x1.f62e6de301e21p+0, 0x1.fc3bd63962535p-1, 0x1.62534e7dd1047p-1, -0x1.177dca0ad144cp+0,
    0x1.2ebb4484e99c7p+0, 0x1.d338e04d68bfp-1, -0x1.4ba081bec66e3p+0, 0x1.3991d63983534p+0, 0x1.835339f49c846p+0,
    0x1.3908bf177bf25p-1, -0x1.081b5f13801dap-2, -0x1.c00ed00043f4dp-1, -0x1.0fd33f8086877p-3, -0x1.0d0ee74a5f593p-4,
    -0x1.4beb25c12593p-1, -0x1.25930261b069fp-1, -0x1.b069ec9161738p-1, -0x1.61738132c3403p-1, -0x1.61a015d28ad84p+0,
    0x1.7527bac7ebe5fp+0, -0x1.6b01ec5417056p-55, 0x1.f47d4d377036ep-54, -0x1.1f924eb53361ep-55, 0x1.664f10e4107f9p-54,
    0x1.07f9458eaf7afp-58, 0x1.d5ef5de2b0db9p-55, 0x1.586dc91b8e909p-54, 0x1.d2126e9700325p-59, 0x1.700324977504fp-55,
    -0x1.15f62e6de301ep-56, 0x1.cfe1deb1cb12ap-60, -0x1.38d3b5963045ep-54, -0x1.822efb9415a29p-57,
    -0x1.0568a25dbd8b3p-55, 0x1.213a671c09ad1p-54, 0x1.35a2fbf209cc9p-59, -0x1.bec66e29c67cbp-56,
    0x1.8e60d4ce7d272p-54, -0x1.82d8dee81d108p-54, -0x1.d1081b5f13802p-58, 0x1.d8ffc4bffef03p-59,
    -0x1.0fd33f8086877p-67, 0x1.fde5e2316b415p-61, -0x1.d297d64b824b2p-58, 0x1.f6d367ecf27cbp-60,
    -0x1.30d834f648b0cp-56, 0x1.b74f463f669e6p-56, -0x1.32c3402ba515bp-57, 0x1.16ba93dd63f5fp-55,
    -0x1.4e050683a130cp-54, 0x1.7b3d0739f78a5p-56, -0x1.6447e493ad4cep-109, -0x1.d6a66c3bc6fbep-108,
    0x1.c820ff28b1d5fp-111, 0x1.163abdebbc562p-108, -0x1.d4f246dc8e2dfp-115, 0x1.1b8e909374b8p-110,
    0x1.ba5c00c925dd4p-109, -0x1.a22bec5cdbc6p-113, -0x1.cdbc603c429c7p-109, -0x1.0a71a76b2c609p-111,
    -0x1.63045df7282b4p-114, 0x1.1afa975da2427p-111, 0x1.a24274ce38136p-111, -0x1.c7eca5d040df6p-111,
    0x1.f7e413991d63ap-108, -0x1.4e33e566305b2p-115, 0x1.9cfa4e422fc5ep-111, 0x1.17e2ef7e4a0ecp-110,
    -0x1.b5f13801da001p-110, 0x1.2fffbc0b301fep-113, -0x1.9fc04343b9d29p-114, -0x1.d297d64b824b2p-122,
    -0x1.2e092c98130d8p-116, -0x1.8130d834f648bp-112, 0x1.36e9e8c7ecd3dp-117, 0x1.8fd9a797fa8b6p-110,
    -0x1.5d28ad8453814p-116, -0x1.14e050683a131p-114, 0x1.7c5ecf41ce7dep-110, 0x1.ce7de294a4baap-110,
    0x1.497535fdafd89p-111, 0x1.e21c820ff28b2p-163, -0x1.ae9c5421443aap-168, -0x1.443a9e48db91cp-168,
    -0x1.236e4716f6c8bp-162, 0x1.374b801924bbbp-170, 0x1.924bba8274648p-166, 0x1.3a32439fc3bd6p-165,
    -0x1.e214e34ed658cp-168, 0x1.894d39f74411bp-163, 0x1.1046bea5d7689p-165, -0x1.44bb7b16638fep-168,
    0x1.338e04d68befdp-165, -0x1.741037d8cdc54p-165, -0x1.9b8a719f2b318p-166, -0x1.f2b3182d8dee8p-162,
    0x1.08bf177bf2507p-169, -0x1.036be27003b4p-167, 0x1.ff897ffde0598p-164, 0x1.e05980fef2f12p-164,
    -0x1.a1dce94beb25cp-169, -0x1.f592e092c9813p-168, -0x1.8130d834f648bp-176, -0x1.a7b24585ce04dp-171,
    -0x1.738132c3402bap-169, -0x1.00ae9456c229cp-171, -0x1.5b08a7028341dp-165, -0x1.a0e84c2f8c608p-172,
    0x1.0739f78a5292fp-168, 0x1.4a525d4d7f6bfp-165, -0x1.404a04ee072a3p-164, -0x1.ca8bdea7f33eep-170};
// x less the nearest multiple of pi / 2, whose number mod 4 are the low bits of `quarter`, as the sum of two numbers.
// After Payne and Hanek: x is a whole number of steps of 2^(32 k) if k > 0, so whole turns in a step can be left out.
inline __attribute__((always_inline)) double lazy_quarter_turn_of(double x, double* low, unsigned long* quarter) {
  const long exponent = (long)((__builtin_bit_cast(unsigned long, x) >> 52) & 0x7fful) - 1075;
  const unsigned long k = (unsigned long)(exponent < 0 ? 0l : exponent) >> 5;
  const double m = x * __builtin_bit_cast(double, (1023ul - 32ul * k) << 52);
  const double step = lazy_turns_of_steps[k], step_1 = lazy_turns_of_steps[k + 31ul];
  const double step_2 = lazy_turns_of_steps[k + 62ul], step_3 = lazy_turns_of_steps[k + 93ul];
  const double a = m * step, b = m * step_1, c = m * step_2, d = m * step_3;
  const double a_low = __builtin_fma(m, step, -a), b_low = __builtin_fma(m, step_1, -b);
  const double c_low = __builtin_fma(m, step_2, -c);
  double e, f, g, h, i, j;
  const double ab = lazy_two_sum(lazy_modulo_4(a), lazy_modulo_4(a_low), &e);
  const double abc = lazy_two_sum(ab, lazy_modulo_4(b), &f), t = abc + 0x1.8p52;
  const double rest = lazy_two_sum(abc - (t - 0x1.8p52), lazy_two_sum(b_low, c, &g), &h);
  const double turn = lazy_two_sum(lazy_two_sum(rest, e, &i), f, &j), turn_low = h + i + j + (g + c_low + d);
  const double r = turn * 0x1.921fb54442d18p+0, lost = __builtin_fma(turn, 0x1.921fb54442d18p+0, -r);
  const double r_low = lost + __builtin_fma(turn, 0x1.1a62633145c07p-54, turn_low * 0x1.921fb54442d18p+0);
  const bool small = __builtin_fabs(x) < 0.78539816339744828;
  *quarter = small ? 0ul : __builtin_bit_cast(unsigned long, t);
  *low = small ? 0.0 : r_low;
  return small ? x : r;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_sin_series", R"(
// sin(r + low) for |r| <= pi / 4, and what its rounding lost.
inline __attribute__((always_inline)) double lazy_sin_series(double r, double low, double* lost) {
  const double s = r * r;
  double p = 0x1.5d9f701edf991p-33;
  p = __builtin_fma(p, s, -0x1.ae5e96e524900p-26);
  p = __builtin_fma(p, s, 0x1.71de35bfdef22p-19);
  p = __builtin_fma(p, s, -0x1.a01a019c7571ep-13);
  p = __builtin_fma(p, s, 0x1.111111110fc6cp-7);
  p = __builtin_fma(p, s, -0x1.555555555554cp-3);
  const double rest = __builtin_fma(p * s, r, __builtin_fma(s * -0.5, low, low)), sine = r + rest;
  *lost = r - sine + rest;
  return sine;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_cos_series", R"(
inline __attribute__((always_inline)) double lazy_cos_series(double r, double low, double* lost) {
  const double s = r * r, half = 0.5 * s, top = 1.0 - half;
  double p = -0x1.8fbab3e90a305p-37;
  p = __builtin_fma(p, s, 0x1.1eea05a918f5ap-29);
  p = __builtin_fma(p, s, -0x1.27e4f8344abb0p-22);
  p = __builtin_fma(p, s, 0x1.a01a019cf4825p-16);
  p = __builtin_fma(p, s, -0x1.6c16c16c1549dp-10);
  p = __builtin_fma(p, s, 0x1.555555555554dp-5);
  const double rest = 1.0 - top - half + __builtin_fma(p * s, s, -r * low), cosine = top + rest;
  *lost = top - cosine + rest;
  return cosine;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_sin", R"(
inline __attribute__((always_inline)) double lazy_sin(double x) {
  unsigned long quarter;
  double low, sine_low, cosine_low;
  const double r = lazy_quarter_turn_of(x, &low, &quarter);
  const double sine = lazy_sin_series(r, low, &sine_low), cosine = lazy_cos_series(r, low, &cosine_low);
  const double size = (quarter & 1ul) != 0ul ? cosine : sine;
  const double y = __builtin_bit_cast(double, __builtin_bit_cast(unsigned long, size) ^ ((quarter & 2ul) << 62));
  return x == 0.0 ? x : y;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_cos", R"(
inline __attribute__((always_inline)) double lazy_cos(double x) {
  unsigned long quarter;
  double low, sine_low, cosine_low;
  const double r = lazy_quarter_turn_of(x, &low, &quarter);
  const double sine = lazy_sin_series(r, low, &sine_low), cosine = lazy_cos_series(r, low, &cosine_low);
  const double size = (quarter & 1ul) != 0ul ? sine : cosine;
  return __builtin_bit_cast(double, __builtin_bit_cast(unsigned long, size) ^ (((quarter + 1ul) & 2ul) << 62));
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_tan", R"(
inline __attribute__((always_inline)) double lazy_tan(double x) {
  unsigned long quarter;
  double low, sine_low, cosine_low;
  const double r = lazy_quarter_turn_of(x, &low, &quarter);
  const double sine = lazy_sin_series(r, low, &sine_low), cosine = lazy_cos_series(r, low, &cosine_low);
  const bool is_odd = (quarter & 1ul) != 0ul;
  const double top = is_odd ? -cosine : sine, top_low = is_odd ? -cosine_low : sine_low;
  const double bottom = is_odd ? sine : cosine, bottom_low = is_odd ? sine_low : cosine_low;
  const double inverse = 1.0 / bottom, q = top * inverse;
  const double y = __builtin_fma(inverse, __builtin_fma(-q, bottom, top) + __builtin_fma(-q, bottom_low, top_low), q);
  return x == 0.0 ? x : y;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_atan2", R"(
// The angle of the smaller side over the larger one, added to or taken from a whole number of right angles.
inline __attribute__((always_inline)) double lazy_atan2(double y, double x) {
  const double across = __builtin_fabs(x), up = __builtin_fabs(y);
  const bool steep = up > across, back = __builtin_copysign(1.0, x) < 0.0;
  const double larger = steep ? up : across, smaller = steep ? across : up;
  const double quotient = smaller / (larger == 0.0 ? 1.0 : larger), t = smaller == __builtin_inf() ? 1.0 : quotient;
  const double s = t * t;
  double p = 0x1.e714609b51f09p-17;
  p = __builtin_fma(p, s, -0x1.5a7a9a20319ffp-13);
  p = __builtin_fma(p, s, 0x1.d3e16a501147ap-11);
  p = __builtin_fma(p, s, -0x1.91258a58d327cp-9);
  p = __builtin_fma(p, s, 0x1.ee5b4a1628cacp-8);
  p = __builtin_fma(p, s, -0x1.d7d6f20467b4dp-7);
  p = __builtin_fma(p, s, 0x1.710e84ba02594p-6);
  p = __builtin_fma(p, s, -0x1.f1523d465b36fp-6);
  p = __builtin_fma(p, s, 0x1.2e8ec52c8a05fp-5);
  p = __builtin_fma(p, s, -0x1.5ad767338a459p-5);
  p = __builtin_fma(p, s, 0x1.835400fc7db23p-5);
  p = __builtin_fma(p, s, -0x1.ae837aae72616p-5);
  p = __builtin_fma(p, s, 0x1.e1c453b289ac6p-5);
  p = __builtin_fma(p, s, -0x1.110f1522467c5p-4);
  p = __builtin_fma(p, s, 0x1.3b137ff86bae6p-4);
  p = __builtin_fma(p, s, -0x1.745d13ffdf604p-4);
  p = __builtin_fma(p, s, 0x1.c71c71a3f1c51p-4);
  p = __builtin_fma(p, s, -0x1.249249242a7c5p-3);
  p = __builtin_fma(p, s, 0x1.99999999989d0p-3);
  p = __builtin_fma(p, s, -0x1.5555555555552p-2);
  const double size = __builtin_fma(p * s, t, t), turned = steep != back ? -size : size;
  const double turns = steep ? 0.5 : back ? 1.0 : 0.0;
  const double angle = __builtin_fma(turns, 0x1.921fb54442d18p+1, __builtin_fma(turns, 0x1.1a62633145c07p-53, turned));
  return (x != x) | (y != y) ? x + y : __builtin_copysign(angle, y);
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_log2_series", R"(
// log2(m) for m - 1 = f of lazy_log_reduced, as the sum of two numbers right to 2^-65: by u = f / (2 + f), whose first
// two terms are double-double.
inline __attribute__((always_inline)) double lazy_log2_series(double f, double* low) {
  const double d = 2.0 + f, d_low = f - (d - 2.0), inverse = 1.0 / d;
  const double u = f * inverse, u_low = __builtin_fma(-u, d_low, __builtin_fma(-u, d, f)) * inverse;
  const double z = u * u, z_low = __builtin_fma(u + u, u_low, __builtin_fma(u, u, -z));
  const double zz = z * z;
  double q = 0x1.60fe6991ac749p-3, p = 0x1.591cd55a47025p-3;
  q = __builtin_fma(q, zz, 0x1.8a07f6fe79bd0p-3);
  p = __builtin_fma(p, zz, 0x1.c68ef67c82e18p-3);
  q = __builtin_fma(q, zz, 0x1.0c9a851ee447ap-2);
  p = __builtin_fma(p, zz, 0x1.484b13d6f0fdcp-2);
  q = __builtin_fma(q, zz, 0x1.a61762a7ae886p-2);
  p = __builtin_fma(p, zz, 0x1.2776c50ef9bfdp-1);
  p = __builtin_fma(q, z, p) * z;
  const double a = 0x1.ec709dc3a03fdp-1 + p, a_low = 0x1.ec709dc3a03fdp-1 - a + p + 0x1.d27f05548af0cp-55;
  const double b = z * a, b_low = __builtin_fma(z_low, a, __builtin_fma(z, a_low, __builtin_fma(z, a, -b)));
  const double c = 0x1.71547652b82fep+1 + b, c_low = 0x1.71547652b82fep+1 - c + b + (b_low + 0x1.777d0ffda0d24p-55);
  const double high = u * c;
  *low = __builtin_fma(u_low, c, __builtin_fma(u, c_low, __builtin_fma(u, c, -high)));
  return high;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_exp2_product", R"(
// 2^((l + l_low) * y).
inline __attribute__((always_inline)) double lazy_exp2_product(double l, double l_low, double y) {
  const double power = l * y, low = __builtin_fma(l_low, y, __builtin_fma(l, y, -power));
  const double t = power + 6755399441057790.0, r = power - (t - 6755399441057790.0);
  const double p = lazy_exp_polynomial(__builtin_fma(low, 0x1.62e42fefa39efp-1, r * 0x1.62e42fefa39efp-1));
  const double v = power < -1100.0 ? 0.0 : lazy_scaled(p, t);
  return power > 1100.0 ? __builtin_inf() : v;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_power", R"(
// With the logarithm in double-double, infinite or NaN where |x| is 0, infinite or NaN.
inline __attribute__((always_inline)) double lazy_power(double x, double y) {
  const double size = __builtin_fabs(x), infinity = __builtin_inf();
  double n, unit, low;
  const double high = lazy_log2_series(lazy_log_reduced(size, &n, &unit), &low), sum = n + high;
  const double l = size == 0.0 ? -infinity : sum;
  double v = lazy_exp2_product(size < infinity ? l : size, n - sum + high + low, y);
  const double half = 0.5 * y;
  const bool is_whole = __builtin_trunc(y) == y, is_odd = is_whole & (__builtin_trunc(half) != half);
  v = is_odd ? __builtin_copysign(v, x) : v;
  v = (x < 0.0) & (size < infinity) & !is_whole ? __builtin_nan("") : v;
  return (y == 0.0) | (x == 1.0) | ((x == -1.0) & (__builtin_fabs(y) == infinity)) ? 1.0 : v;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_erf", R"(
inline __attribute__((always_inline)) double lazy_erf(double x) {
  const double t = __builtin_fabs(x), s = x * x;
  double p = 0x1.81e9f11ce0118p-40;
  p = __builtin_fma(p, t, -0x1.0d7b687d45c8ep-34);
  p = __builtin_fma(p, t, 0x1.607a62bab2005p-30);
  p = __builtin_fma(p, t, -0x1.1ea54c1540596p-26);
  p = __builtin_fma(p, t, 0x1.442e349d8dd35p-23);
  p = __builtin_fma(p, t, -0x1.0d81c777ebae1p-20);
  p = __builtin_fma(p, t, 0x1.52127a683f003p-18);
  p = __builtin_fma(p, t, -0x1.401c2c78f5b53p-16);
  p = __builtin_fma(p, t, 0x1.b73bdc01d1b7ap-15);
  p = __builtin_fma(p, t, -0x1.6cf0acd97dabcp-14);
  p = __builtin_fma(p, t, -0x1.eb1f575bd98bfp-17);
  p = __builtin_fma(p, t, 0x1.394c5cb6381dap-11);
  p = __builtin_fma(p, t, -0x1.c2ae0ca6e2ca8p-10);
  p = __builtin_fma(p, t, 0x1.ef38c53973026p-13);
  p = __builtin_fma(p, t, 0x1.3911f9b2ed8b1p-6);
  p = __builtin_fma(p, t, -0x1.a4ea1c5383083p-4);
  p = __builtin_fma(p, t, -0x1.45f37bd852a8ep-1);
  p = __builtin_fma(p, t, -0x1.20dd69067c635p+0);
  p = __builtin_fma(p, t, -0x1.20d08e116921bp-24);
  const double far = __builtin_copysign(1.0 - lazy_exp_nonpositive(t > 5.95 ? -40.0 : p), x);
  double r = -0x1.d300027fca13ep-31;
  r = __builtin_fma(r, s, 0x1.e2d161eb31290p-27);
  r = __builtin_fma(r, s, -0x1.5d899ba3f0a24p-23);
  r = __builtin_fma(r, s, 0x1.b9b83aaf26e24p-20);
  r = __builtin_fma(r, s, -0x1.f4cf6c19f67e4p-17);
  r = __builtin_fma(r, s, 0x1.f9a307324167bp-14);
  r = __builtin_fma(r, s, -0x1.c02db31d7a380p-11);
  r = __builtin_fma(r, s, 0x1.565bcd0a670eap-8);
  r = __builtin_fma(r, s, -0x1.b82ce312733d4p-6);
  r = __builtin_fma(r, s, 0x1.ce2f21a04282cp-4);
  r = __builtin_fma(r, s, -0x1.812746b0379e3p-2);
  r = __builtin_fma(r, s, 0x1.06eba8214db69p-3);
  const double near = __builtin_fma(r, x, x);
  return t > 0.9 ? far : near;
}
)",
     /*for_cpu_alone=*/true},
    {"lazy_float_mod", R"(
// In one step, as long as the quotient has no more bits than a double.
inline __attribute__((always_inline)) double lazy_float_mod(double x, double y) {
  const double size = __builtin_fabs(x), d = __builtin_fabs(y), q = __builtin_trunc(size / d);
  if (!(q < 0x1p52)) return __builtin_fmod(x, y);
  const double r = __builtin_fma(-q, d, size);
  return __builtin_copysign(q == 0.0 ? size : r < 0.0 ? r + d : r, x);
}
)",
     /*for_cpu_alone=*/true},
};

}  // namespace

absl::Span<const NamedFunction> DoubleFunctions() { return kDoubleFunctions; }

}  // namespace torch_lazy::codegen
