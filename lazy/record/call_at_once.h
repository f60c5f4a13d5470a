// SPDX-License-Identifier: Apache-2.0
// The short way to run a call at once: Note [Calls at once] in lazy/trace/at_once.h.
//
//   CallAtOnce call(op);                          // the device lock is held
//   std::tuple eager{call.Eager(arguments)...};
//   if (call.is_short()) {                        // the lock is not held any more
//     const RunsEager scope(op);
//     result = call.Lazy(at::mul(eager...));
//   }
//
// Nothing is boxed, unless the call came boxed. It serves calls on dense tensors that have contents and nothing
// pending, and whose results are such tensors. All others take the long way (run_now.h).
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include "base/log.h"
#include "base/metrics.h"
#include "lazy/eager/on_host.h"
#include "lazy/ops/op.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

class CallAtOnce {
 public:
  explicit CallAtOnce(const Op& op) : op_(op) {}

  // To be asked first: whether any call of the operator may go this way.
  static bool IsFor(const Op& op) { return op.runner == nullptr && !op.irregular && IsOnHost(); }

  // True if all arguments so far are such that the call may go this way, and one is the device's.
  bool is_short() const { return is_short_ && !memory_.empty(); }
  bool may_be_short() const { return is_short_; }

  // The next argument: of the device's tensors, eager ones on the same memory. The device lock is held.
  at::Tensor Eager(const at::Tensor& tensor) { return EagerOf(tensor, op_.args[arg_++].written); }
  std::optional<at::Tensor> Eager(const std::optional<at::Tensor>& tensor) {
    ++arg_;
    return tensor ? std::optional(EagerOf(*tensor, /*written=*/false)) : std::nullopt;
  }
  c10::List<std::optional<at::Tensor>> Eager(const c10::List<std::optional<at::Tensor>>& list) {
    ++arg_;
    c10::List<std::optional<at::Tensor>> eager;
    eager.reserve(list.size());
    for (const std::optional<at::Tensor>& tensor : list) {
      eager.push_back(tensor ? std::optional(EagerOf(*tensor, /*written=*/false)) : std::nullopt);
    }
    return eager;
  }
  std::vector<at::Tensor> Eager(at::TensorList list) { return EagerOfAll(list); }
  std::vector<at::Tensor> Eager(const at::ITensorListRef& list) { return EagerOfAll(list); }
  c10::IValue Eager(const c10::IValue& boxed);
  template <typename T>
  const T& Eager(const T& other) {
    ++arg_;
    return other;
  }

  // To be called once, before the run.
  void Count() const {
    LAZY_LOG(1, "at once: ", op_.name);
    base::Count(base::Counter::kCallsTotal);
    base::Count(base::Counter::kCallsImmediate);
    op_.num_at_once.fetch_add(1, std::memory_order_relaxed);
  }

  // True if the CPU's own kernel comes next, below autograd: no argument is conjugate or negative.
  bool is_plain() const {
    const c10::DispatchKeySet below = keys_ & c10::after_ADInplaceOrView_keyset;
    return below == c10::DispatchKeySet(c10::DispatchKey::CPU) ||
           below.highestPriorityTypeId() == c10::DispatchKey::CPU;
  }

  // What the call has returned, on the device.
  at::Tensor Lazy(at::Tensor result);
  c10::IValue Lazy(const c10::IValue& boxed);
  std::vector<at::Tensor> Lazy(std::vector<at::Tensor> results) {
    for (at::Tensor& result : results) result = Lazy(std::move(result));
    return results;
  }
  template <typename... T>
  std::tuple<T...> Lazy(std::tuple<T...> results) {
    return std::apply([this](T&... result) { return std::tuple{Lazy(std::move(result))...}; }, results);
  }

 private:
  struct Memory {
    const c10::StorageImpl* eager;
    c10::StorageImpl* lazy;
  };

  at::Tensor EagerOf(const at::Tensor& tensor, bool written);
  template <typename Tensors>
  std::vector<at::Tensor> EagerOfAll(const Tensors& list) {
    const bool written = op_.args[arg_++].written;
    std::vector<at::Tensor> eager;
    eager.reserve(list.size());
    for (const at::Tensor& tensor : list) eager.push_back(EagerOf(tensor, written));
    return eager;
  }

  const Op& op_;
  size_t arg_ = 0;
  bool is_short_ = true;
  c10::DispatchKeySet keys_;
  c10::SmallVector<Memory, 4> memory_;  // of arguments and results
};

// Runs a boxed call at once. False if it has to go the long way: then the stack is as it was.
bool RunShort(const Op& op, torch::jit::Stack* stack);

}  // namespace torch_lazy::lazy
