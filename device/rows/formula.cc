// SPDX-License-Identifier: Apache-2.0
#include "device/rows/formula.h"

namespace torch_lazy::device {

bool InClass(TypeClass type_class, ir::DType dtype) {
  switch (type_class) {
    case kFloats:
      return ir::IsFloat(dtype);
    case kNumbers:
      return ir::IsFloat(dtype) || ir::IsInteger(dtype);
    case kIntegers:
      return ir::IsInteger(dtype) || dtype == ir::DType::kBool;
    case kReals:
      return !ir::IsComplex(dtype);
  }
  return false;
}

bool IsReal(lazy::Lowering& call, int arg) {
  return !call.IsNone(arg) && !ir::IsComplex(call.b().dtype(call.Tensor(arg)));
}

Tensor ReadWide(lazy::Lowering& call, int arg) {
  const Tensor x(call.b(), call.Tensor(arg));
  return Cast(x, Wide(x.dtype()));
}

Tensor ReadAsResult(lazy::Lowering& call, int arg) {
  return Cast(Cast({call.b(), call.Tensor(arg)}, call.Result(0).dtype), call.ComputeType());
}

}  // namespace torch_lazy::device
