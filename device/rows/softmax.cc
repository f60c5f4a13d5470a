// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along one dim, and their gradients.
#include "ir/decompose/softmax.h"

#include "device/rows/formula.h"
#include "device/rows/reduced_dims.h"
#include "device/rows/rows.h"
#include "device/shapes/reductions.h"

namespace torch_lazy::device {
namespace {

namespace formula = ir::decompose;

int DimOf(const Tensor& x, int64_t dim) { return x.rank() == 0 ? 0 : static_cast<int>(OneDim(dim, x.rank())[0]); }

// (self, dim, half_to_float)
template <auto kFormula>
bool Forward(lazy::Lowering& call) {
  if (!InClass(kFloats, call.ComputeType())) return false;
  const Tensor x = Cast({call.b(), call.Tensor(0)}, call.ComputeType());
  call.Return(0, kFormula(call.b(), x, DimOf(x, call.Int(1))));
  return true;
}

// (grad, y, dim, input_dtype): y is the result of the forward.
template <auto kFormula>
bool Backward(lazy::Lowering& call) {
  if (!InClass(kFloats, call.ComputeType())) return false;
  const Tensor g = Cast({call.b(), call.Tensor(0)}, call.ComputeType());
  const Tensor y = Cast({call.b(), call.Tensor(1)}, call.ComputeType());
  call.Return(0, kFormula(call.b(), g, y, DimOf(y, call.Int(2))));
  return true;
}

constexpr lazy::Row kSoftmaxRows[] = {
    {"aten::_softmax", Forward<formula::Softmax>, kTakesAllValues, shapes::Softmax},
    {"aten::_log_softmax", Forward<formula::LogSoftmax>, kTakesAllValues, shapes::Softmax},
    {"aten::_softmax_backward_data", Backward<formula::SoftmaxBackward>, kTakesAllValues, shapes::SoftmaxBackward},
    {"aten::_log_softmax_backward_data", Backward<formula::LogSoftmaxBackward>, kTakesAllValues,
     shapes::SoftmaxBackward},
};

}  // namespace

Rows SoftmaxRows() { return kSoftmaxRows; }

}  // namespace torch_lazy::device
