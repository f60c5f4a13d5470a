// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/op_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "codegen/kernels/number_facts.h"
#include "ir/op_list.h"
#include "ir/passes/numbers.h"

namespace torch_lazy::codegen {
namespace {

using ir::DType;
using ir::Op;

// $0, $1, ...: arguments. $T: the type. @: before a name of C's library, whose suffix for the type
// is $f. lazy_ functions stand in math_text.cc and cuda/math_text.cc. Bool takes the text for
// integers unless it has its own; the result is narrowed by the register's type.
struct OpRow {
  Op op;
  const char* of_floats;
  const char* of_integers;
  const char* of_bool = nullptr;
};

constexpr OpRow kOpRows[] = {
    {Op::kNeg, "-$0", "-$0"},
    {Op::kAbs, "@fabs$f($0)", "$0 < 0 ? -$0 : $0"},
    {Op::kSqrt, "@sqrt$f($0)", nullptr},
    {Op::kRsqrt, "($T)1 / @sqrt$f($0)", nullptr},
    {Op::kRecip, "($T)1 / $0", nullptr},
    {Op::kExp, "lazy_exp($0)", nullptr},
    {Op::kExp2, "lazy_exp2($0)", nullptr},
    {Op::kExpm1, "lazy_expm1($0)", nullptr},
    {Op::kLog, "lazy_log($0)", nullptr},
    {Op::kLog2, "lazy_log2($0)", nullptr},
    {Op::kLog10, "lazy_log10($0)", nullptr},
    {Op::kLog1p, "lazy_log1p($0)", nullptr},
    {Op::kSin, "lazy_sin($0)", nullptr},
    {Op::kCos, "lazy_cos($0)", nullptr},
    {Op::kTan, "lazy_tan($0)", nullptr},
    {Op::kTanh, "lazy_tanh($0)", nullptr},
    {Op::kErf, "lazy_erf($0)", nullptr},
    {Op::kFloor, "@floor$f($0)", "$0"},
    {Op::kCeil, "@ceil$f($0)", "$0"},
    {Op::kTrunc, "@trunc$f($0)", "$0"},
    {Op::kRound, "@rint$f($0)", "$0"},
    {Op::kNot, nullptr, "~$0", "!$0"},
    {Op::kAdd, "$0 + $1", "$0 + $1", "$0 | $1"},
    {Op::kSub, "$0 - $1", "$0 - $1"},
    {Op::kMul, "$0 * $1", "$0 * $1", "$0 & $1"},
    {Op::kDiv, "$0 / $1", nullptr},
    {Op::kFloorDiv, "lazy_floor_div($0, $1)", "lazy_floor_div($0, $1)"},
    {Op::kTruncDiv, "@trunc$f($0 / $1)", "lazy_trunc_div($0, $1)"},
    {Op::kFmod, "lazy_float_mod($0, $1)", "lazy_fmod($0, $1)"},
    {Op::kRemainder, "lazy_remainder($0, $1)", "lazy_remainder($0, $1)"},
    {Op::kPow, "lazy_power($0, $1)", "lazy_pow($0, $1)"},
    {Op::kAtan2, "lazy_atan2($0, $1)", nullptr},
    {Op::kMax, "lazy_max($0, $1)", "$0 > $1 ? $0 : $1"},
    {Op::kMin, "lazy_min($0, $1)", "$0 < $1 ? $0 : $1"},
    {Op::kAnd, nullptr, "$0 & $1"},
    {Op::kOr, nullptr, "$0 | $1"},
    {Op::kXor, nullptr, "$0 ^ $1"},
    {Op::kEq, "$0 == $1", "$0 == $1"},
    {Op::kNe, "$0 != $1", "$0 != $1"},
    {Op::kLt, "$0 < $1", "$0 < $1"},
    {Op::kLe, "$0 <= $1", "$0 <= $1"},
    {Op::kGt, "$0 > $1", "$0 > $1"},
    {Op::kGe, "$0 >= $1", "$0 >= $1"},
    {Op::kFma, "@fma$f($0, $1, $2)", "$0 * $1 + $2"},
    {Op::kWhere, "$0 ? $1 : $2", "$0 ? $1 : $2"},
    {Op::kBernoulli, nullptr, "lazy_bernoulli($0, $1, $2, $3, $4, $5)"},
};

// Sums are exact enough in double for any length, in their own type for a few hundred numbers;
// products overflow in theirs. The others lose nothing.
struct FoldRow {
  Op op;
  const char* identity_of_floats;
  const char* identity_of_integers;
  const char* step;                           // also combines accumulators
  const char* step_of_integers = nullptr;     // if it is another one
  const char* step_of_cuda_floats = nullptr;  // of f32, where that is one instruction
};

constexpr FoldRow kFoldRows[] = {
    {Op::kSum, "0", "0", "$0 + $1"},
    {Op::kProd, "1", "1", "$0 * $1"},
    {Op::kReduceMax, "-@inf()", "lazy_lowest<$T>()", "lazy_fold_max($0, $1)", "$1 > $0 ? $1 : $0", "lazy_max($0, $1)"},
    {Op::kReduceMaxNumber, "-@inf()", "", "$1 > $0 ? $1 : $0", nullptr, "lazy_max_number($0, $1)"},
    {Op::kReduceMin, "@inf()", "lazy_highest<$T>()", "lazy_fold_min($0, $1)", "$1 < $0 ? $1 : $0", "lazy_min($0, $1)"},
    {Op::kAny, "0", "0", "$0 | $1"},
    {Op::kAll, "1", "1", "$0 & $1"},
};

template <typename Row, size_t kRows>
constexpr bool HasRow(const Row (&rows)[kRows], Op op) {
  return std::any_of(rows, rows + kRows, [&](const Row& row) { return row.op == op; });
}

// A primitive without text does not compile. The text of a `cast` follows from two types; places of the largest and the
// smallest number are found by the emitters.
constexpr bool HasText(ir::Kind kind, Op op) {
  if (kind == ir::Kind::kElementwise) return op == Op::kCast || HasRow(kOpRows, op);
  if (kind == ir::Kind::kReduce) return op == Op::kArgMax || op == Op::kArgMin || HasRow(kFoldRows, op);
  return true;
}
#define X(op, text, kind, ...) static_assert(HasText(ir::Kind::kind, Op::k##op), text " has no text");
TORCH_LAZY_OP_LIST(X)
#undef X

void ReplaceAll(std::string* text, const std::string& what, const std::string& with) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + with.size())) {
    text->replace(at, what.size(), with);
  }
}

// What the names of C's library are called where there are no headers.
std::string NamedFor(Target target, std::string text) {
  if (target == Target::kCuda) {
    ReplaceAll(&text, "@inf(", "lazy_inf(");
    ReplaceAll(&text, "@nan(", "lazy_nan(");
  }
  ReplaceAll(&text, "@", target == Target::kCuda ? "" : "__builtin_");
  return text;
}

std::string CastText(DType from, DType to, const std::string& x) {
  if (to == DType::kBool) return absl::StrCat(x, " != 0");
  if (to == DType::kBF16) return absl::StrCat("lazy_round_bf16(", x, ")");
  if (to == DType::kF16) return absl::StrCat("lazy_round_f16(", x, ")");
  const std::string type = ComputeType(to);
  // What does not fit becomes the lowest number of 32 or 64 bits, then cut. ATen takes u8 by way
  // of 64.
  if (ir::IsFloat(from) && to == DType::kU8) return absl::StrCat("(", type, ")(long)", x);
  if (ir::IsFloat(from) && (to == DType::kI8 || to == DType::kI16)) return absl::StrCat("(", type, ")(int)", x);
  return absl::StrCat("(", type, ")", x);
}

// 16-bit floats are computed in f32; what may not be exact is rounded, in case no cast follows.
std::string Rounded(const ir::Node& node, const std::string& text) {
  const bool exact = ChoosesOnly(node.op) || !ir::IsHalf(node.type.dtype);
  return exact ? text : CastText(DType::kF32, node.type.dtype, absl::StrCat("(", text, ")"));
}

// A constant, and not NaN.
bool IsNumber(const ir::Graph& graph, ir::Value v) {
  const ir::Node* const constant = ir::ConstantOf(graph, v);
  return constant != nullptr && !std::isnan(constant->attrs.f);
}

// The larger or the smaller of a number and of `x`, which wins if it is NaN: one instruction.
std::string BesideNumber(Op op, const std::string& number, const std::string& x) {
  return absl::StrCat(number, op == Op::kMax ? " > " : " < ", x, " ? ", number, " : ", x);
}

}  // namespace

std::string MemoryType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "unsigned char";
    case DType::kF16:
    case DType::kBF16:
      return "unsigned short";
    default:
      return ComputeType(dtype);
  }
}

std::string ComputeType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "unsigned char";
    case DType::kI8:
      return "signed char";
    case DType::kI16:
      return "short";
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "long";
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kC64:  // complex numbers are only moved
      return "unsigned long";
    case DType::kC128:
      return "unsigned __int128";
  }
  LAZY_CHECK(false, "no C++ type for ", static_cast<int>(dtype));
  return "";
}

std::string LoadText(DType dtype, const std::string& memory) {
  if (dtype == DType::kBool) return absl::StrCat(memory, " != 0");
  if (dtype == DType::kBF16) return absl::StrCat("lazy_from_bf16(", memory, ")");
  if (dtype == DType::kF16) return absl::StrCat("lazy_from_f16(", memory, ")");
  return memory;
}

std::string StoreText(DType dtype, const std::string& value) {
  if (dtype == DType::kBF16) return absl::StrCat("lazy_to_bf16(", value, ")");
  if (dtype == DType::kF16) return absl::StrCat("lazy_to_f16(", value, ")");
  return value;
}

std::string FloatLiteral(Target target, DType dtype, double value) {
  if (std::isnan(value)) return NamedFor(target, absl::StrCat("((", ComputeType(dtype), ")@nan(\"\"))"));
  if (std::isinf(value))
    return NamedFor(target, absl::StrCat("((", ComputeType(dtype), ")", value < 0 ? "-" : "", "@inf())"));
  std::string digits = absl::StrFormat("%.17g", value);
  if (dtype != DType::kF64) digits = absl::StrFormat("%.9g", static_cast<float>(value));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  if (dtype != DType::kF64) digits += "f";
  return digits[0] == '-' ? absl::StrCat("(", digits, ")") : digits;  // "-" may stand before it
}

std::string IntegerLiteral(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0 ? "true" : "false";
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807L - 1)";
  const std::string digits = absl::StrCat(value, dtype == DType::kI64 ? "L" : "");
  if (dtype != DType::kI64 && dtype != DType::kI32) {  // which C++ has no literals for
    return absl::StrCat("((", ComputeType(dtype), ")", digits, ")");
  }
  return value < 0 ? absl::StrCat("(", digits, ")") : digits;
}

std::string Substitute(const std::string& pattern, const std::vector<std::string>& arguments) {
  std::string text;
  for (size_t k = 0; k < pattern.size(); ++k) {
    const bool is_argument =
        pattern[k] == '$' && k + 1 < pattern.size() && pattern[k + 1] >= '0' && pattern[k + 1] <= '9';
    if (!is_argument) {
      text += pattern[k];
      continue;
    }
    text += arguments[pattern[++k] - '0'];
  }
  return text;
}

std::string OpText(Target target, const ir::Graph& graph, const ir::Node& node,
                   const std::vector<std::string>& arguments, Precision precision) {
  const DType in = graph.type(node.inputs.back()).dtype;  // of a where the last: the first is its condition
  if (node.op == Op::kCast) {
    if (ir::IsHalf(node.type.dtype) && IsExactIn(node.type.dtype, graph, node.inputs[0]))
      return CastText(in, DType::kF32, arguments[0]);
    return CastText(in, node.type.dtype, arguments[0]);
  }
  if (node.op == Op::kExp && in == DType::kF32 && precision != Precision::kFull)
    return absl::StrCat("lazy_exp_of_half(", arguments[0], ")");
  if (node.op == Op::kExp && IsNonPositive(graph, node.inputs[0])) {
    return Rounded(node, absl::StrCat("lazy_exp_nonpositive(", arguments[0], ")"));
  }
  if (target == Target::kCpu && ir::IsFloat(in) && (node.op == Op::kMax || node.op == Op::kMin)) {
    for (const int k : {0, 1}) {
      if (IsNumber(graph, node.inputs[k])) return BesideNumber(node.op, arguments[k], arguments[1 - k]);
    }
  }
  for (const OpRow& row : kOpRows) {
    if (row.op != node.op) continue;
    const char* pattern = ir::IsFloat(in) ? row.of_floats : row.of_integers;
    if (in == DType::kBool && row.of_bool != nullptr) pattern = row.of_bool;
    LAZY_CHECK(pattern != nullptr, ir::Info(node.op).text, " of ", ir::Name(in));
    std::string text = NamedFor(target, pattern);
    ReplaceAll(&text, "$T", ComputeType(in));
    ReplaceAll(&text, "$f", in == DType::kF64 ? "" : "f");
    return Rounded(node, Substitute(text, arguments));
  }
  LAZY_CHECK(false, "no C++ text for ", ir::Info(node.op).text);
  return "";
}

Fold FoldOf(Target target, Op op, DType dtype) {
  for (const FoldRow& row : kFoldRows) {
    if (row.op != op) continue;
    const bool widens = ir::IsFloat(dtype) && (op == Op::kSum || op == Op::kProd);
    Fold fold;
    fold.type = widens ? "double" : ComputeType(dtype);
    fold.block_type = op == Op::kSum ? ComputeType(dtype) : fold.type;
    fold.identity = NamedFor(target, ir::IsFloat(dtype) ? row.identity_of_floats : row.identity_of_integers);
    ReplaceAll(&fold.identity, "$T", fold.type);
    const bool is_native = target == Target::kCuda && fold.type == "float" && row.step_of_cuda_floats != nullptr;
    const bool is_other = !ir::IsFloat(dtype) && row.step_of_integers != nullptr;
    fold.step = is_native ? row.step_of_cuda_floats : is_other ? row.step_of_integers : row.step;
    fold.combine = fold.step;
    return fold;
  }
  LAZY_CHECK(false, "no fold for ", ir::Info(op).text);
  return {};
}

}  // namespace torch_lazy::codegen
