// SPDX-License-Identifier: Apache-2.0
// Recorders with the C++ signature of their operator, for the operators that training programs call most.
//
// A call that is the one expected next is recorded without boxing its arguments (lazy/record/prediction.h); any other
// is boxed and goes the way of all operators.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <ATen/core/operator_name.h>
#include <torch/library.h>

namespace torch_lazy::device {

// The unboxed recorder of an operator; null if it has none.
std::optional<torch::CppFunction> UnboxedRecorder(const c10::OperatorName& name);

// to.copy_(from), both on the device.
void RecordCopy(at::Tensor to, const at::Tensor& from, bool non_blocking);

// At AutogradPrivateUse1, last, for those whose derivatives PyTorch knows (no_grad.h).
void RecordWithoutGrad(torch::Library& aten);

}  // namespace torch_lazy::device
