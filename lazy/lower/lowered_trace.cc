// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/lowered_trace.h"

#include <bit>

namespace torch_lazy::lazy {
namespace {

// A number among a call's tensors. Most are plain numbers that PyTorch has wrapped: these are read from their memory,
// since `item` goes through the dispatcher and costs as much as recording a call.
double NumberOf(const at::Tensor& tensor, bool integer) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.is_wrapped_number() && !integer && impl.dtype() == caffe2::TypeMeta::Make<double>()) {
    return *static_cast<const double*>(impl.data());
  }
  const at::Scalar number = tensor.item();
  return integer ? std::bit_cast<double>(number.toLong()) : number.toDouble();
}

}  // namespace

std::vector<double> ScalarsOf(const LoweredTrace& lowered, const Trace& trace) {
  std::vector<double> numbers;
  numbers.reserve(lowered.numbers.size());
  for (const NumberSource& source : lowered.numbers) {
    const c10::IValue* value = &trace.numbers[source.place];
    if (source.item >= 0) value = &value->toListRef()[source.item];
    if (value->isTensor()) {
      numbers.push_back(NumberOf(value->toTensor(), source.integer));
    } else if (source.integer) {
      numbers.push_back(
          std::bit_cast<double>(value->isBool() ? static_cast<int64_t>(value->toBool()) : value->toInt()));
    } else {
      numbers.push_back(value->toDouble());
    }
  }
  return numbers;
}

}  // namespace torch_lazy::lazy
