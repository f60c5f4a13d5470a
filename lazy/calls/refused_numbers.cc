// SPDX-License-Identifier: Apache-2.0
#include "lazy/calls/refused_numbers.h"

#include <limits>

namespace torch_lazy::lazy {
namespace {

// The largest finite value; 0 if any number becomes one of this type.
double Largest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return 255;
    case at::kChar:
      return 127;
    case at::kShort:
      return 32767;
    case at::kInt:
      return std::numeric_limits<int32_t>::max();
    case at::kLong:
      return 0x1p62;
    case at::kHalf:
      return 65504;
    case at::kBFloat16:
      return 3.3895e38;
    case at::kBool:  // beside a floating number it becomes float32
    case at::kFloat:
    case at::kComplexFloat:
      return std::numeric_limits<float>::max();
    default:
      return 0;
  }
}

bool Fits(double value, bool is_integer, const Op& op, at::ScalarType dtype) {
  if (is_integer && at::isIntegralType(dtype, /*includeBool=*/true)) {
    if (op.Has(kRefusesZero) && value == 0) return false;
    if (op.Has(kRefusesNegative) && value < 0) return false;
  }
  const double largest = Largest(dtype);
  if (!at::isIntegralType(dtype, /*includeBool=*/false)) {
    return largest == 0 || !std::isfinite(value) || std::abs(value) <= largest;
  }
  return std::abs(value) <= largest && (is_integer || dtype != at::kByte || value >= 0);
}

template <typename Accept>
bool All(const c10::IValue& number, const Accept& accept) {
  if (number.isDouble()) return accept(number.toDouble(), false);
  if (number.isInt()) return accept(static_cast<double>(number.toInt()), true);
  if (number.isBool()) return accept(number.toBool() ? 1.0 : 0.0, true);
  if (number.isTensor()) {
    const at::Tensor& tensor = number.toTensor();
    if (!tensor.defined() || tensor.is_complex()) return true;
    return accept(tensor.item().toDouble(), !tensor.is_floating_point());
  }
  if (number.isComplexDouble()) return accept(number.toComplexDouble().real(), false);
  if (!number.isList()) return true;
  for (const c10::IValue& item : number.toListRef()) {
    if (!All(item, accept)) return false;
  }
  return true;
}

// Only complex tensors take it for sure.
bool IsImaginary(const c10::IValue& number) {
  if (number.isComplexDouble()) return number.toComplexDouble().imag() != 0;
  if (number.isTensor()) return number.toTensor().defined() && number.toTensor().is_complex();
  if (!number.isList()) return false;
  const auto list = number.toListRef();
  return std::any_of(list.begin(), list.end(), IsImaginary);
}

}  // namespace

bool IsAccepted(const c10::IValue& number, const Op& op, c10::ArrayRef<CallOperand> operands) {
  if (op.seed_arg >= 0) return true;  // ours: seeds are no elements
  if (number.isBool() && op.Has(kRefusesTruth)) return false;
  const bool is_imaginary = IsImaginary(number);
  at::ScalarType last = at::ScalarType::Undefined;
  for (const CallOperand& operand : operands) {
    const at::ScalarType dtype = c10::typeMetaToScalarType(operand.tensor->dtype());
    if (dtype == last) continue;
    last = dtype;
    if (is_imaginary && !c10::isComplexType(dtype)) return false;
    if (!All(number, [&](double value, bool is_integer) { return Fits(value, is_integer, op, dtype); })) return false;
  }
  return true;
}

}  // namespace torch_lazy::lazy
