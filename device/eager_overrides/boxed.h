// SPDX-License-Identifier: Apache-2.0
// A kernel's way to an operator's usual course, where the kernel has nothing to add.
//
//   return CallBoxed<at::_ops::_scaled_dot_product_efficient_attention>(query, key, ...);
#pragma once

#include <utility>

#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "lazy/ops/op.h"
#include "lazy/record/record.h"

namespace torch_lazy::device {
namespace internal {

template <class Operator, class Signature>
struct Boxed;

template <class Operator, class Result, class... Args>
struct Boxed<Operator, Result(Args...)> {
  static Result Call(Args... args) {
    static const lazy::Op& op =
        lazy::OpOf(c10::Dispatcher::singleton().findSchemaOrThrow(Operator::name, Operator::overload_name));
    torch::jit::Stack stack = c10::impl::boxArgs<Args...>(std::forward<Args>(args)...);
    lazy::Call(op, &stack);
    return c10::impl::PopResult<Result>::call(stack);
  }
};

}  // namespace internal

// Records the call, or runs it at once.
template <class Operator, class... Args>
auto CallBoxed(const Args&... args) {
  return internal::Boxed<Operator, typename Operator::schema>::Call(args...);
}

}  // namespace torch_lazy::device
