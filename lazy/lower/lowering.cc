// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/lowering.h"

namespace torch_lazy::lazy {

ir::DType Lowering::ComputeType() const {
  const ir::DType dtype = Result(0).dtype;
  return ir::IsHalf(dtype) ? ir::DType::kF32 : dtype;
}

ir::Value Lowering::Operand(int arg, ir::DType as) {
  return b().BroadcastTo(b().Cast(Tensor(arg), as), Result(0).dims);
}

}  // namespace torch_lazy::lazy
