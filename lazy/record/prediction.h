// SPDX-License-Identifier: Apache-2.0
// The short way to record: the call is compared with the one that came next the last time.
//
//   Prediction prediction(op);
//   if (prediction.Holds(arguments...)) {
//     at::Tensor result = prediction.Result<at::Tensor>();
//     prediction.End();
//   }
//
// Nothing is written down, boxed or looked up. A prediction that does not hold leaves no trace, and the call is
// recorded the long way (record.cc), which learns.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "lazy/calls/append_call.h"
#include "lazy/calls/describer.h"
#include "lazy/calls/refused_numbers.h"
#include "lazy/cuts/cut.h"
#include "lazy/host/lock.h"
#include "lazy/trace/new_slots.h"
#include "lazy/trace/thread_trace.h"

namespace torch_lazy::lazy {

class Prediction {
 public:
  // Takes the device lock until End() or the end of its life, as own if the call only reads: Note [Device lock]. Runs a
  // step that has ended first.
  explicit Prediction(const Op& op);

  template <typename... Args>
  bool Holds(const Args&... args) {
    if (call_ == nullptr) return false;
    Describer<Prediction> describer(op_, this);
    size_t arg = 0;
    return held_ = (... && describer.Argument(arg++, args)) && AcceptsNumbers();
  }

  // Records the call and makes its new results: a tensor, a tuple, a list, or void.
  template <typename R>
  R Result();

  // After Result(). To be called without other locks: may run what was recorded.
  void End() {
    lock_.unlock();
    if (full_ != nullptr) CutThreadTraceAndGoOn(full_);
  }

  ~Prediction() {
    if (!held_ && call_ != nullptr) trace_->numbers.resize(call_->first_number);
  }

  // --- as the sink of a description ---
  bool Word(int64_t word) { return *next_word_++ == word; }
  C10_ALWAYS_INLINE bool Words(at::IntArrayRef words) {
    const int64_t* const expected = std::exchange(next_word_, next_word_ + words.size());
    for (size_t k = 0; k < words.size(); ++k) {
      if (expected[k] != words[k]) return false;
    }
    return true;
  }
  bool Operand(const CallOperand& operand);
  bool Number(size_t, double value) {
    are_modest_ = are_modest_ && IsModest(value);
    return trace_->numbers.emplace_back(value), true;
  }
  bool Number(size_t, c10::IValue value) {
    are_modest_ = are_modest_ && value.isInt() && IsModest(static_cast<double>(value.toInt()));
    return trace_->numbers.push_back(std::move(value)), true;
  }
  bool HostNumber(size_t arg, const c10::IValue& value) {
    return value.isTensor() && value.toTensor().unsafeGetTensorImpl()->is_wrapped_number() && Number(arg, value);
  }
  bool Unrecordable() { return false; }

  // Whether the call, for which the prediction did not hold, is to run at once: Note [Calls at once].
  bool RunsAtOnce() { return lazy::RunsAtOnce(op_, trace_.get()); }
  // It does, the short way.
  void EndAtOnce() {
    TellAtOnce(op_, trace_.get());
    lock_.unlock();
  }

 private:
  bool AcceptsNumbers() const {
    if (call_->first_number == trace_->numbers.size() || (are_modest_ && AreFloating(operands_))) return true;
    for (size_t k = call_->first_number; k < trace_->numbers.size(); ++k) {
      if (!IsAccepted(trace_->numbers[k], op_, operands_)) return false;
    }
    return true;
  }
  // The call's own effect; the new results must be made next, in order.
  void Take();
  at::Tensor NewResult(size_t r) { return lazy::NewResult(call_->shape->results[r], trace_); }
  template <size_t... r>
  auto NewResults(std::index_sequence<r...>) {
    return std::tuple{NewResult(r)...};  // braces: from left to right
  }

  const Op& op_;
  RecordingLock lock_;
  const std::shared_ptr<Trace>& trace_;
  Expected* call_ = nullptr;  // null: nothing is known to come next
  const int64_t* next_word_ = nullptr;
  const int32_t* next_slot_ = nullptr;
  NewSlots new_slots_;
  c10::SmallVector<CallOperand, 8> operands_;
  bool are_modest_ = true;  // the call's numbers
  bool held_ = false;
  const char* full_ = nullptr;  // the reason to cut after this call
};

template <typename R>
struct IsTuple : std::false_type {};
template <typename... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};

template <typename R>
R Prediction::Result() {
  Take();
  if constexpr (std::is_same_v<R, at::Tensor>) {
    at::Tensor result = NewResult(0);
    full_ = StepTo(call_, /*grown=*/false, trace_.get());
    return result;
  } else if constexpr (IsTuple<R>::value) {
    R results = NewResults(std::make_index_sequence<std::tuple_size_v<R>>());
    full_ = StepTo(call_, /*grown=*/false, trace_.get());
    return results;
  } else if constexpr (std::is_same_v<R, std::vector<at::Tensor>>) {
    R results;
    results.reserve(call_->shape->results.size());
    for (size_t r = 0; r < call_->shape->results.size(); ++r) results.push_back(NewResult(r));
    full_ = StepTo(call_, /*grown=*/false, trace_.get());
    return results;
  } else {
    static_assert(std::is_void_v<R>);
    full_ = StepTo(call_, /*grown=*/false, trace_.get());
  }
}

}  // namespace torch_lazy::lazy
