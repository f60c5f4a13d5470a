// SPDX-License-Identifier: Apache-2.0
// A call as words, operands and numbers, argument by argument.
//
// One description serves two readers: the recorder that writes it down (describe.cc), and the one that only compares it
// with the call expected next (prediction.h). A reader is a Sink:
//
//   bool Word(int64_t)                        the next word
//   bool Words(at::IntArrayRef)               the next ones
//   bool Operand(const CallOperand&)          the next tensor of the device; its words come before
//   bool Number(size_t arg, c10::IValue)      a number given at run time: arguments of the trace, not of its path
//   bool HostNumber(size_t arg, const c10::IValue&)   the same, as a 0-dim CPU tensor or a list that holds some
//   bool Unrecordable()
//
// Each returns false to end the description there.
#pragma once

#include <array>
#include <bit>
#include <optional>
#include <string_view>

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include "lazy/calls/call.h"
#include "lazy/eager/composite_tensors.h"
#include "lazy/eager/current_device.h"

namespace torch_lazy::lazy {

// The first word of each argument: what follows it is then known, so that equal words mean equal calls.
enum Tag : int64_t {
  kNone = 1,
  kUndefined,
  kLazy,
  kCpuScalar,
  kList,
  kInt,
  kDouble,
  kBool,
  kComplex,
  kString,
  kInts,
  kDoubles,
  kDevice
};

// A flag of kLazy: the next word is the bytes of the storage, which the sizes do not say.
constexpr int64_t kPart = 8;

inline bool IsPart(const c10::TensorImpl& tensor, const c10::StorageImpl& storage) {
  return static_cast<size_t>(tensor.numel()) * tensor.itemsize() != storage.nbytes();
}

template <typename Sink>
class Describer {
 public:
  Describer(const Op& op, Sink* sink) : op_(op), sink_(*sink), device_(CurrentDevice()) {}

  // One overload for each C++ type that operators take.
  bool Argument(size_t arg, const at::Tensor& tensor) {
    bool host = false;
    return Tensor(tensor, arg, -1, &host) && (!host || sink_.HostNumber(arg, tensor));
  }
  bool Argument(size_t arg, at::TensorList list) { return List(arg, list, list.size()); }
  bool Argument(size_t arg, const at::ITensorListRef& list) { return List(arg, list, list.size()); }
  bool Argument(size_t arg, const c10::List<std::optional<at::Tensor>>& list) {
    bool ok = Push(kList, static_cast<int64_t>(list.size()));
    bool host = false;
    for (size_t k = 0; ok && k < list.size(); ++k) {
      const std::optional<at::Tensor> item = list.get(k);
      ok = item ? Tensor(*item, arg, static_cast<int>(k), &host) : Push(kNone);
    }
    return ok && (!host || sink_.HostNumber(arg, list));
  }
  bool Argument(size_t arg, const at::Scalar& number) {
    if (number.isSymbolic()) return sink_.Unrecordable();
    if (number.isFloatingPoint()) return Argument(arg, number.toDouble());
    return NumberWords(number, op_.args[arg].is_unit) && sink_.Number(arg, number);
  }
  bool Argument(size_t arg, at::ArrayRef<at::Scalar> numbers) {
    bool ok = Push(kList, static_cast<int64_t>(numbers.size()));
    for (size_t k = 0; ok && k < numbers.size(); ++k) ok = NumberWords(numbers[k]);
    return ok && sink_.Number(arg, c10::IValue(numbers));
  }
  bool Argument(size_t arg, double number) {
    return Push(kDouble) && (!op_.structural_numbers || sink_.Word(std::bit_cast<int64_t>(number))) &&
           sink_.Number(arg, number);
  }
  bool Argument(size_t, int64_t value) { return Push(kInt) && sink_.Word(value); }
  bool Argument(size_t, bool value) { return Push(kBool, value); }
  bool Argument(size_t arg, const c10::SymInt& value) {
    const std::optional<int64_t> number = value.maybe_as_int();
    return number ? Argument(arg, *number) : sink_.Unrecordable();
  }
  bool Argument(size_t, at::IntArrayRef list) {
    return Push(kInts, static_cast<int64_t>(list.size())) && sink_.Words(list);
  }
  bool Argument(size_t arg, c10::SymIntArrayRef list) {
    const auto numbers = c10::asIntArrayRefSlowOpt(list);
    return numbers ? Argument(arg, *numbers) : sink_.Unrecordable();
  }
  bool Argument(size_t arg, at::OptionalIntArrayRef list) { return list ? Argument(arg, *list) : Push(kNone); }
  bool Argument(size_t arg, at::OptionalSymIntArrayRef list) { return list ? Argument(arg, *list) : Push(kNone); }
  template <size_t kSize>
  bool Argument(size_t, const std::array<bool, kSize>& list) {
    bool ok = Push(kInts, kSize);
    for (size_t k = 0; ok && k < kSize; ++k) ok = sink_.Word(list[k]);
    return ok;
  }
  bool Argument(size_t arg, at::ScalarType value) { return Argument(arg, static_cast<int64_t>(value)); }
  bool Argument(size_t arg, at::MemoryFormat value) { return Argument(arg, static_cast<int64_t>(value)); }
  bool Argument(size_t, std::string_view text) {
    bool ok = Push(kString, static_cast<int64_t>(text.size()));
    for (size_t i = 0; ok && i < text.size(); i += 8) {
      int64_t word = 0;
      for (size_t k = i; k < text.size() && k < i + 8; ++k) word = (word << 8) | static_cast<unsigned char>(text[k]);
      ok = sink_.Word(word);
    }
    return ok;
  }
  template <typename T>
  bool Argument(size_t arg, const std::optional<T>& value) {
    return value ? Argument(arg, *value) : Push(kNone);
  }

  // The same from the stack, for every type there is.
  bool Boxed(size_t arg, const c10::IValue& value) {
    if (op_.args[arg].kind == ArgKind::kGenerator) return value.isNone() || sink_.Unrecordable();
    if (value.isNone()) return Push(kNone);
    switch (op_.args[arg].kind) {
      case ArgKind::kTensor:
        return Argument(arg, value.toTensor());
      case ArgKind::kTensorList:
      case ArgKind::kOptionalTensorList:
        return BoxedTensors(arg, value);
      case ArgKind::kNumber:
        return Argument(arg, value.toScalar());
      case ArgKind::kNumberList:
        return BoxedNumbers(arg, value);
      default:
        return Structure(arg, value);
    }
  }

 private:
  bool Push(Tag tag, int64_t rest = 0) { return sink_.Word(static_cast<int64_t>(tag) | (rest << 8)); }

  bool Tensor(const at::Tensor& tensor, size_t arg, int item, bool* host) {
    if (!tensor.defined()) return Push(kUndefined);
    c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (impl->device_type() != c10::kPrivateUse1) {
      *host = true;
      return op_.args[arg].written ? sink_.Unrecordable() : HostTensor(tensor);
    }
    LazyStorageImpl* storage = IsDense(tensor) && !IsNamed(tensor) ? LazyStorageImpl::Of(tensor) : nullptr;
    if (storage == nullptr || storage->device().index() != device_) return sink_.Unrecordable();
    const bool is_part = IsPart(*impl, *storage);
    const c10::DispatchKeySet keys = impl->key_set();
    const int64_t flags = (keys.has(c10::DispatchKey::Conjugate) ? 1 : 0) |
                          (keys.has(c10::DispatchKey::Negative) ? 2 : 0) | (impl->is_wrapped_number() ? 4 : 0) |
                          (is_part ? kPart : 0);
    return Push(kLazy, static_cast<int64_t>(tensor.scalar_type()) | (flags << 8) | (impl->dim() << 16)) &&
           (!is_part || sink_.Word(static_cast<int64_t>(storage->nbytes()))) &&  // else the sizes say it
           sink_.Words(impl->sizes()) && sink_.Words(impl->strides()) && sink_.Word(impl->storage_offset()) &&
           sink_.Operand({storage, impl, item, static_cast<int16_t>(arg), op_.args[arg].written});
  }

  // Eager devices take a number that lives on the host as an operand; anything else there is handled at once.
  bool HostTensor(const at::Tensor& tensor) {
    if (tensor.dim() != 0 || !IsDense(tensor) || !tensor.is_cpu() || tensor.is_conj() || tensor.is_neg()) {
      return sink_.Unrecordable();
    }
    const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    if (!Push(kCpuScalar, static_cast<int64_t>(tensor.scalar_type()) | (wrapped << 8))) return false;
    if (!op_.structural_numbers) return true;
    return tensor.is_complex() ? sink_.Unrecordable() : sink_.Word(std::bit_cast<int64_t>(tensor.item().toDouble()));
  }

  template <typename Tensors>
  bool List(size_t arg, const Tensors& list, size_t size) {
    bool ok = Push(kList, static_cast<int64_t>(size));
    bool host = false;
    int item = 0;
    for (const at::Tensor& tensor : list) ok = ok && Tensor(tensor, arg, item++, &host);
    if (!ok || !host) return ok;
    c10::List<at::Tensor> numbers;
    for (const at::Tensor& tensor : list) numbers.push_back(tensor);
    return sink_.HostNumber(arg, std::move(numbers));
  }

  bool BoxedTensors(size_t arg, const c10::IValue& value) {
    const auto list = value.toListRef();
    bool ok = Push(kList, static_cast<int64_t>(list.size()));
    bool host = false;
    for (size_t k = 0; ok && k < list.size(); ++k) {
      ok = list[k].isNone() ? Push(kNone) : Tensor(list[k].toTensor(), arg, static_cast<int>(k), &host);
    }
    return ok && (!host || sink_.HostNumber(arg, value));
  }

  bool BoxedNumbers(size_t arg, const c10::IValue& value) {
    const auto list = value.toListRef();
    bool ok = Push(kList, static_cast<int64_t>(list.size()));
    for (size_t k = 0; ok && k < list.size(); ++k) ok = NumberWords(list[k].toScalar());
    return ok && sink_.Number(arg, value);
  }

  // `is_unit`: see Arg.
  bool NumberWords(const at::Scalar& number, bool is_unit = false) {
    const Tag tag = number.isFloatingPoint() ? kDouble
                    : number.isBoolean()     ? kBool
                    : number.isComplex()     ? kComplex
                                             : kInt;
    const bool is_one = is_unit && tag == kInt && number.toLong() == 1;
    if (!Push(tag, is_one)) return false;
    if (!op_.structural_numbers) return true;
    if (tag == kComplex) {
      const c10::complex<double> value = number.toComplexDouble();
      return sink_.Word(std::bit_cast<int64_t>(value.real())) && sink_.Word(std::bit_cast<int64_t>(value.imag()));
    }
    return sink_.Word(tag == kDouble ? std::bit_cast<int64_t>(number.toDouble()) : number.toLong());
  }

  bool Structure(size_t arg, const c10::IValue& value) {
    if (value.isInt()) return Argument(arg, value.toInt());
    if (value.isBool()) return Argument(arg, value.toBool());
    if (value.isIntList()) return Argument(arg, at::IntArrayRef(value.toDimVector()));
    if (value.isBoolList()) {
      const auto list = value.toBoolList();
      bool ok = Push(kInts, static_cast<int64_t>(list.size()));
      for (size_t k = 0; ok && k < list.size(); ++k) ok = sink_.Word(list.get(k));
      return ok;
    }
    if (value.isDoubleList()) {
      const auto list = value.toDoubleVector();
      bool ok = Push(kDoubles, static_cast<int64_t>(list.size()));
      for (size_t k = 0; ok && k < list.size(); ++k) ok = sink_.Word(std::bit_cast<int64_t>(list[k]));
      return ok;
    }
    if (value.isString()) return Argument(arg, std::string_view(value.toStringRef()));
    if (value.isDevice()) {
      const c10::Device device = value.toDevice();
      return Push(kDevice, static_cast<int64_t>(device.type()) | ((device.index() + 1) << 8));
    }
    return sink_.Unrecordable();
  }

  const Op& op_;
  Sink& sink_;
  const int device_;  // of the call: one with tensors of several is no trace's
};

}  // namespace torch_lazy::lazy
