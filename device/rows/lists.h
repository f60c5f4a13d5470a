// SPDX-License-Identifier: Apache-2.0
// Rows over lists of tensors: one formula, applied to item k of every list.
//
//   {"aten::_foreach_mul.Scalar", Each<kNumbers, [](Tensor x, Number c) { return x * c; }>},
//
// Parameters are read as in formula.h, a Tensor from a list; the types below say what else an argument may be.
#pragma once

#include "device/rows/formula.h"

namespace torch_lazy::device {

struct Shared : Tensor {
  using Tensor::Tensor;
};  // one tensor for all items
struct Numbers : Tensor {
  using Tensor::Tensor;
};  // a number for each item
struct StoredNumber : Tensor {
  using Tensor::Tensor;
};  // a Number, rounded to the result's type
struct StoredNumbers : Tensor {
  using Tensor::Tensor;
};

// What is read for item k.
template <typename T>
struct Item;

template <>
struct Item<Tensor> {
  static Tensor Read(lazy::Lowering& call, int arg, int k) {
    const ir::DType dtype = call.Result(k).dtype;
    return Cast(Cast({call.b(), call.ListTensor(arg, k)}, dtype), Wide(dtype));
  }
};

template <>
struct Item<Shared> {
  static Shared Read(lazy::Lowering& call, int arg, int k) {
    return {call.b(), call.b().Cast(call.Tensor(arg), Wide(call.Result(k).dtype))};
  }
};

template <>
struct Item<Number> {
  static Number Read(lazy::Lowering& call, int arg, int k) {
    return {call.b(), call.Number(arg, Wide(call.Result(k).dtype))};
  }
};

template <>
struct Item<Numbers> {
  static Numbers Read(lazy::Lowering& call, int arg, int k) {
    return {call.b(), call.ListNumber(arg, k, Wide(call.Result(k).dtype))};
  }
};

template <>
struct Item<StoredNumber> {
  static StoredNumber Read(lazy::Lowering& call, int arg, int k) {
    return {call.b(), Rounded(Item<Number>::Read(call, arg, k), call.Result(k).dtype)};
  }
};

template <>
struct Item<StoredNumbers> {
  static StoredNumbers Read(lazy::Lowering& call, int arg, int k) {
    return {call.b(), Rounded(Item<Numbers>::Read(call, arg, k), call.Result(k).dtype)};
  }
};

template <typename Function, typename Result, typename... Args, size_t... kArg>
bool LowerEach(TypeClass type_class, lazy::Lowering& call, Result (Function::*)(Args...) const, const Function& formula,
               std::index_sequence<kArg...>) {
  for (int k = 0; k < call.num_results(); ++k) {
    if (!InClass(type_class, call.Result(k).dtype)) return false;
  }
  for (int k = 0; k < call.num_results(); ++k) {
    const std::tuple<Args...> args{Item<Args>::Read(call, kArg, k)...};
    call.Return(k, std::apply(formula, args));
  }
  return true;
}

template <TypeClass kClass, auto kFormula>
bool Each(lazy::Lowering& call) {
  constexpr auto kCall = &decltype(kFormula)::operator();
  return LowerEach(kClass, call, kCall, kFormula, Indices(kCall));
}

}  // namespace torch_lazy::device
