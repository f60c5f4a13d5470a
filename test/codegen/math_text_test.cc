// SPDX-License-Identifier: Apache-2.0
// Transcendental functions of f32 and f64 over all exponents, against long double.
#include <bit>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

struct MathCase {
  const char* op;
  long double (*exact)(long double);
  // What is done to the argument %x; the result is what `op` is done to.
  const char* before = "";
  const char* operand = "%x";
};

long double ExpOfMinusSquare(long double x) {
  const float square = static_cast<float>(x) * static_cast<float>(x);
  return std::exp(-static_cast<long double>(square));
}

void PrintTo(const MathCase& c, std::ostream* out) { *out << c.op; }

// Every exponent and sign with 2,000 mantissas each, and the numbers that are special.
std::vector<double> Arguments() {
  std::vector<double> arguments = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0, 0x1p-149, -0x1p-149};
  arguments.push_back(std::bit_cast<float>(0x7fc00001u));
  arguments.push_back(std::bit_cast<float>(0xffffffffu));
  // Where exp and exp2 overflow, become subnormal and become 0.
  for (const float edge : {88.7228317f, 88.7228394f, 127.999992f, 128.0f, -87.3365479f, -103.278931f, -103.972084f,
                           -126.000008f, -149.0f, -150.0f}) {
    arguments.push_back(edge);
  }
  std::mt19937 random(7);
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int k = 0; k < 2000; ++k) {
      const uint32_t bits = exponent << 23 | (random() & 0x807fffff);
      arguments.push_back(std::bit_cast<float>(bits));
    }
  }
  // Densely where most arguments are.
  for (int k = -400000; k <= 400000; ++k) arguments.push_back(static_cast<float>(k * 0.0003));
  return arguments;
}

// The distance in units of the exact result's last place, subnormal results included.
double Ulps(float actual, long double exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : INFINITY;
  const float rounded = static_cast<float>(exact);
  if (actual == rounded) return 0;
  if (std::isinf(rounded) || std::isinf(actual) || std::isnan(actual)) return INFINITY;
  int exponent = 0;
  std::frexp(static_cast<double>(exact), &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return static_cast<double>(std::abs(actual - exact)) / unit;
}

// The same of doubles, with 300 mantissas each.
std::vector<double> WideArguments() {
  std::vector<double> arguments = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0, 0x1p-1074, -0x1p-1074};
  for (const double edge : {709.78271289338397, 709.78271289338409, 1023.9999999999999, 1024.0, -708.39641853226408,
                            -745.13321910194111, -745.13321910194122, -1022.0000000001, -1074.0, -1075.0}) {
    arguments.push_back(edge);
  }
  std::mt19937_64 random(7);
  for (uint64_t exponent = 0; exponent < 2047; ++exponent) {
    for (int k = 0; k < 300; ++k) {
      arguments.push_back(std::bit_cast<double>(exponent << 52 | (random() & 0x800fffffffffffff)));
    }
  }
  for (int k = -200000; k <= 200000; ++k) arguments.push_back(k * 0.0006);
  return arguments;
}

double Ulps(double actual, long double exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : INFINITY;
  const auto rounded = static_cast<double>(exact);
  if (actual == rounded) return 0;
  if (std::isinf(rounded) || std::isinf(actual) || std::isnan(actual)) return INFINITY;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  return static_cast<double>(std::abs(actual - exact) / std::ldexp(1.0L, std::max(exponent - 53, -1074)));
}

// What the compiled graph of this text, of f32, gives for arguments of `dtype`.
std::vector<double> Computed(std::string text, ir::DType dtype, const std::vector<std::vector<double>>& arguments) {
  if (dtype == ir::DType::kF64) text = absl::StrReplaceAll(text, {{"f32", "f64"}});
  const absl::StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  ir::EvaluateInputs inputs;
  const auto count = static_cast<int64_t>(arguments[0].size());
  inputs.symbols = {count};
  for (const std::vector<double>& values : arguments) inputs.params.push_back(ir::MakeFloats(dtype, {count}, values));
  const std::vector<ir::HostValue> results = RunPlan(*graph, PlanOf(text), &inputs);
  EXPECT_EQ(results.size(), 1u);
  return results[0].floats;
}

std::string TextOf(const MathCase& c) {
  return absl::StrCat("graph @g(%x: f32[s0]) {\n", c.before, "  %9 = ", c.op, " ", c.operand,
                      " : f32[s0]\n  return %9\n}");
}

class Math : public testing::TestWithParam<MathCase> {};

TEST_P(Math, OfDoublesIsRightToTwoUlps) {
  const std::vector<double> arguments = WideArguments();
  const bool is_of_square = *GetParam().before != 0;
  const std::vector<double> results = Computed(TextOf(GetParam()), ir::DType::kF64, {arguments});
  for (size_t k = 0; k < arguments.size(); ++k) {
    const double x = arguments[k], actual = results[k];
    const long double exact = is_of_square ? std::exp(-static_cast<long double>(x * x)) : GetParam().exact(x);
    ASSERT_LE(Ulps(actual, exact), 2.1) <<  // of tanh, 2.06
        GetParam().op << " at " << x << ": " << actual;
    if (x == 0 && exact == 0) {
      ASSERT_EQ(std::signbit(actual), std::signbit(x)) << "sign of zero";
    }
  }
}

TEST_P(Math, IsRightToTwoUlps) {
  const std::vector<double> arguments = Arguments();
  const std::vector<double> results = Computed(TextOf(GetParam()), ir::DType::kF32, {arguments});
  double worst = 0;
  double worst_at = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const double ulps = Ulps(static_cast<float>(results[k]), GetParam().exact(arguments[k]));
    if (ulps > worst) {
      worst = ulps;
      worst_at = arguments[k];
    }
    if (arguments[k] == 0 && GetParam().exact(arguments[k]) == 0) {
      EXPECT_EQ(std::signbit(results[k]), std::signbit(arguments[k])) << "sign of zero";
    }
  }
  RecordProperty("worst_ulps", std::to_string(worst));
  EXPECT_LE(worst, 2.0) << GetParam().op << " at " << worst_at;
}

// An exponential that is seen to be of no positive number.
INSTANTIATE_TEST_SUITE_P(OfMinusSquares, Math,
                         testing::Values(MathCase{"exp", ExpOfMinusSquare,
                                                  "  %0 = mul %x, %x : f32[s0]\n  %1 = neg %0 : f32[s0]\n", "%1"}),
                         [](const auto& info) { return std::string(info.param.op); });

INSTANTIATE_TEST_SUITE_P(Functions, Math,
                         testing::Values(MathCase{"exp", std::exp}, MathCase{"exp2", std::exp2},
                                         MathCase{"expm1", std::expm1}, MathCase{"log", std::log},
                                         MathCase{"log2", std::log2}, MathCase{"log10", std::log10},
                                         MathCase{"log1p", std::log1p}, MathCase{"sin", std::sin},
                                         MathCase{"cos", std::cos}, MathCase{"tan", std::tan},
                                         MathCase{"tanh", std::tanh}, MathCase{"erf", std::erf}),
                         [](const auto& info) { return std::string(info.param.op); });

struct MathOfTwo {
  const char* op;
  long double (*exact)(long double, long double);
  double ulps = 2;
};

// The sum is rounded, as it is where the numbers are computed with.
template <typename T>
long double Remainder(long double x, long double y) {
  const long double m = std::fmod(x, y);
  return m != 0 && (m < 0) != (y < 0) ? static_cast<long double>(static_cast<T>(m) + static_cast<T>(y)) : m;
}

void PrintTo(const MathOfTwo& c, std::ostream* out) { *out << c.op; }

std::string TextOf(const MathOfTwo& c) {
  return absl::StrCat("graph @g(%x: f32[s0], %y: f32[s0]) {\n  %9 = ", c.op, " %x, %y : f32[s0]\n  return %9\n}");
}

class OfTwo : public testing::TestWithParam<MathOfTwo> {};

// Special numbers against each other; numbers of any bits; and of ordinary size, whole ones among them.
TEST_P(OfTwo, IsRightToSomeUlps) {
  std::vector<double> left, right;
  const float special[] = {0.0f,   -0.0f,       1.0f,        -1.0f, INFINITY, -INFINITY,  NAN,        2.0f,
                           -2.0f,  3.0f,        -3.0f,       0.5f,  -0.5f,    1e-40f,     -1e-40f,    3e38f,
                           -3e38f, 16777216.0f, 16777218.0f, 1e10f, -1e10f,   8388607.5f, -8388607.5f};
  for (const float x : special) {
    for (const float y : special) {
      left.push_back(x);
      right.push_back(y);
    }
  }
  std::mt19937 random(7);
  std::uniform_real_distribution<float> ordinary(-8, 8);
  for (int k = 0; k < 500000; ++k) {
    left.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    right.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    const float x = ordinary(random), y = ordinary(random);
    left.insert(left.end(), {x, std::abs(x), x});
    right.insert(right.end(), {y, y * 10, std::rint(y * 3)});
  }
  const std::vector<double> results = Computed(TextOf(GetParam()), ir::DType::kF32, {left, right});
  for (size_t k = 0; k < left.size(); ++k) {
    const auto actual = static_cast<float>(results[k]);
    const long double exact = GetParam().exact(left[k], right[k]);
    ASSERT_LE(Ulps(actual, exact), GetParam().ulps)
        << left[k] << " and " << right[k] << ": " << actual << " instead of " << exact;
    if (exact == 0) {
      ASSERT_EQ(std::signbit(actual), std::signbit(exact)) << left[k] << " and " << right[k];
    }
  }
}

TEST_P(OfTwo, OfDoublesIsRightToSomeUlps) {
  std::vector<double> left, right;
  const double special[] = {0.0,    -0.0,   1.0,  -1.0,  INFINITY, -INFINITY, NAN,   2.0,
                            -2.0,   3.0,    -3.0, 0.5,   -0.5,     1e-310,    1e308, -1e308,
                            0x1p53, 0x1p54, 1e17, -1e17, 0.1,      -0.7,      1e10,  4503599627370495.5};
  for (const double x : special) {
    for (const double y : special) {
      left.push_back(x);
      right.push_back(y);
    }
  }
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> ordinary(-8, 8);
  for (int k = 0; k < 200000; ++k) {
    left.push_back(std::bit_cast<double>(random()));
    right.push_back(std::bit_cast<double>(random()));
    const double x = ordinary(random), y = ordinary(random);
    left.insert(left.end(), {x, std::abs(x), x});
    right.insert(right.end(), {y, y * 80, std::rint(y * 3)});
  }
  const std::string op = GetParam().op;
  const std::vector<double> results = Computed(TextOf(GetParam()), ir::DType::kF64, {left, right});
  for (size_t k = 0; k < left.size(); ++k) {
    const double actual = results[k];
    // glibc's powl gives infinity for -inf to a large whole negative power.
    const long double exact = op == "remainder" ? Remainder<double>(left[k], right[k])
                              : op == "pow" && std::isinf(left[k])
                                  ? static_cast<long double>(std::pow(left[k], right[k]))
                                  : GetParam().exact(left[k], right[k]);
    ASSERT_LE(Ulps(actual, exact), GetParam().ulps) << left[k] << " and " << right[k] << ": " << actual;
    if (exact == 0) {
      ASSERT_EQ(std::signbit(actual), std::signbit(exact)) << left[k] << " and " << right[k];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, OfTwo,
                         testing::Values(MathOfTwo{"pow", std::pow}, MathOfTwo{"atan2", std::atan2},
                                         MathOfTwo{"fmod", std::fmod, 0}, MathOfTwo{"remainder", Remainder<float>, 0}),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace torch_lazy::codegen
