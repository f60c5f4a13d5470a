// SPDX-License-Identifier: Apache-2.0
// A runner (lazy/ops/row.h) out of an ordinary function.
//
//   void RunLinearBackward(torch::jit::Stack* stack) { Runner<LinearBackward>(stack); }
#pragma once

#include <tuple>
#include <utility>

#include <ATen/core/stack.h>

namespace torch_lazy::device {
namespace internal {

inline void PushResult(torch::jit::Stack* stack, at::Tensor result) { torch::jit::push(*stack, std::move(result)); }
template <class... Results>
void PushResult(torch::jit::Stack* stack, std::tuple<Results...> results) {
  std::apply([stack](auto&... result) { torch::jit::push(*stack, std::move(result)...); }, results);
}

template <class Result, class... Args, size_t... I>
void CallUnboxed(Result (*function)(Args...), torch::jit::Stack* stack, std::index_sequence<I...>) {
  Result result = function(torch::jit::peek(*stack, I, sizeof...(Args)).template to<std::decay_t<Args>>()...);
  torch::jit::drop(*stack, sizeof...(Args));
  PushResult(stack, std::move(result));
}

template <class Result, class... Args>
void CallUnboxed(Result (*function)(Args...), torch::jit::Stack* stack) {
  CallUnboxed(function, stack, std::index_sequence_for<Args...>());
}

}  // namespace internal

template <auto function>
void Runner(torch::jit::Stack* stack) {
  internal::CallUnboxed(function, stack);
}

}  // namespace torch_lazy::device
