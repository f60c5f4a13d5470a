// SPDX-License-Identifier: Apache-2.0
#include "lazy/call.h"

#include <bit>

#include <ATen/core/Generator.h>
#include <c10/core/DeviceGuard.h>

namespace torch_lazy::lazy {
namespace {

// The first word of each argument: what follows it is then known, so that equal words mean equal calls.
enum Tag : int64_t { kNone = 1, kUndefined, kLazy, kCpuScalar, kList, kInt, kDouble, kBool, kComplex, kString, kInts, kDoubles, kDevice };

constexpr int64_t Word(Tag tag, int64_t rest = 0) { return static_cast<int64_t>(tag) | (rest << 8); }

class Describer {
 public:
  Describer(const Op& op, CallDescription* call) : op_(op), call_(*call) {}

  void Argument(size_t index, const c10::IValue& value) {
    const Arg& arg = op_.args[index];
    switch (arg.kind) {
      case ArgKind::kTensor:
        return value.isNone() ? Push(Word(kNone)) : Tensor(value.toTensor(), index, -1, arg.written);
      case ArgKind::kTensorList:
        return TensorList(value, index, arg.written);
      case ArgKind::kOptionalTensorList:
        return OptionalTensorList(value, index);
      case ArgKind::kNumber:
        return Number(value);
      case ArgKind::kNumberList:
        return NumberList(value);
      case ArgKind::kStructure:
        return Structure(value);
      case ArgKind::kGenerator:
        if (!value.isNone()) call_.recordable = false;
        return;
    }
  }

  void SetStructuralNumbers(bool structural) { structural_numbers_ = structural; }

 private:
  void Push(int64_t word) { call_.words.push_back(word); }

  void Tensor(const at::Tensor& tensor, size_t index, int item, bool written) {
    if (!tensor.defined()) return Push(Word(kUndefined));
    c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (impl->device_type() != c10::kPrivateUse1) return HostTensor(tensor);
    LazyStorageImpl* storage = tensor.layout() == at::kStrided ? LazyStorageImpl::Of(tensor) : nullptr;
    if (storage == nullptr) {
      call_.recordable = false;
      return;
    }
    const int64_t dim = impl->dim();
    const int64_t flags = (tensor.is_conj() ? 1 : 0) | (tensor.is_neg() ? 2 : 0) | (impl->is_wrapped_number() ? 4 : 0);
    Push(Word(kLazy, static_cast<int64_t>(tensor.scalar_type()) | (flags << 8) | (dim << 16)));
    call_.words.append(impl->sizes().begin(), impl->sizes().end());
    call_.words.append(impl->strides().begin(), impl->strides().end());
    Push(impl->storage_offset());
    call_.operands.push_back({storage, impl, static_cast<int16_t>(index), static_cast<int16_t>(item), written});
  }

  // Eager devices take a number that lives on the host as an operand; anything else there is handled at once.
  void HostTensor(const at::Tensor& tensor) {
    if (tensor.dim() != 0 || tensor.layout() != at::kStrided || !tensor.is_cpu() || tensor.is_conj() || tensor.is_neg()) {
      call_.recordable = false;
      return;
    }
    Push(Word(kCpuScalar, static_cast<int64_t>(tensor.scalar_type()) | (tensor.unsafeGetTensorImpl()->is_wrapped_number() << 8)));
    if (structural_numbers_) {
      if (tensor.is_complex()) call_.recordable = false;
      else Push(std::bit_cast<int64_t>(tensor.item().toDouble()));
    }
  }

  void TensorList(const c10::IValue& value, size_t index, bool written) {
    if (value.isNone()) return Push(Word(kNone));
    const auto& list = value.toListRef();
    Push(Word(kList, static_cast<int64_t>(list.size())));
    for (size_t k = 0; k < list.size(); ++k) Tensor(list[k].toTensor(), index, static_cast<int>(k), written);
  }

  void OptionalTensorList(const c10::IValue& value, size_t index) {
    const auto& list = value.toListRef();
    Push(Word(kList, static_cast<int64_t>(list.size())));
    for (size_t k = 0; k < list.size(); ++k) {
      if (list[k].isNone()) Push(Word(kNone));
      else Tensor(list[k].toTensor(), index, static_cast<int>(k), false);
    }
  }

  void Number(const c10::IValue& value) {
    if (value.isNone()) return Push(Word(kNone));
    const Tag tag = value.isDouble() ? kDouble : value.isInt() ? kInt : value.isBool() ? kBool : kComplex;
    Push(Word(tag));
    if (tag == kComplex) call_.recordable = call_.recordable && value.isComplexDouble();
    if (!structural_numbers_) return;
    if (tag == kComplex) {
      Push(std::bit_cast<int64_t>(value.toComplexDouble().real()));
      Push(std::bit_cast<int64_t>(value.toComplexDouble().imag()));
    } else {
      Push(tag == kDouble ? std::bit_cast<int64_t>(value.toDouble()) : tag == kInt ? value.toInt() : value.toBool());
    }
  }

  void NumberList(const c10::IValue& value) {
    const auto& list = value.toListRef();
    Push(Word(kList, static_cast<int64_t>(list.size())));
    for (const c10::IValue& number : list) Number(number);
  }

  void Structure(const c10::IValue& value) {
    if (value.isNone()) return Push(Word(kNone));
    if (value.isInt()) return Push(Word(kInt)), Push(value.toInt());
    if (value.isBool()) return Push(Word(kBool, value.toBool()));
    if (value.isDouble()) return Push(Word(kDouble)), Push(std::bit_cast<int64_t>(value.toDouble()));
    if (value.isIntList()) return Ints(value.toIntVector());
    if (value.isBoolList()) {
      const auto list = value.toBoolList();
      Push(Word(kInts, static_cast<int64_t>(list.size())));
      for (const bool b : list) Push(b);
      return;
    }
    if (value.isDoubleList()) {
      const auto list = value.toDoubleVector();
      Push(Word(kDoubles, static_cast<int64_t>(list.size())));
      for (const double d : list) Push(std::bit_cast<int64_t>(d));
      return;
    }
    if (value.isString()) return String(value.toStringRef());
    if (value.isDevice()) return Push(Word(kDevice, static_cast<int64_t>(value.toDevice().type()) | ((value.toDevice().index() + 1) << 8)));
    call_.recordable = false;
  }

  void Ints(const std::vector<int64_t>& ints) {
    Push(Word(kInts, static_cast<int64_t>(ints.size())));
    call_.words.append(ints.begin(), ints.end());
  }

  void String(const std::string& text) {
    Push(Word(kString, static_cast<int64_t>(text.size())));
    for (size_t i = 0; i < text.size(); i += 8) {
      int64_t word = 0;
      for (size_t k = i; k < text.size() && k < i + 8; ++k) word = (word << 8) | static_cast<unsigned char>(text[k]);
      Push(word);
    }
  }

  const Op& op_;
  CallDescription& call_;
  bool structural_numbers_ = false;
};

}  // namespace

void Describe(const Op& op, const torch::jit::Stack& stack, CallDescription* call) {
  Describer describer(op, call);
  // A call without tensors has no other word that tells the size of its result: its numbers do.
  describer.SetStructuralNumbers(!op.takes_tensors || (op.row != nullptr && (op.row->flags & kStructuralScalars) != 0));
  call->words.push_back(op.id);
  const c10::IValue* values = stack.data() + stack.size() - op.args.size();
  for (size_t i = 0; i < op.args.size(); ++i) describer.Argument(i, values[i]);
}

}  // namespace torch_lazy::lazy
