// SPDX-License-Identifier: Apache-2.0
#include "device/recorder.h"

#include <atomic>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include "device/fork.h"
#include "device/rows/rows.h"
#include "device/unboxed.h"
#include "lazy/ops/op.h"
#include "lazy/record/record.h"

namespace torch_lazy::device {
namespace {

using c10::DispatchKey;

// Remembers its operator's description, which is made at the first call: rows of the tables may be registered later
// than this, and most operators are never called.
class Recorder final : public c10::OperatorKernel {
 public:
  explicit Recorder(lazy::ArgumentCheck check = nullptr) : check_(check) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
    CheckFork();
    if (check_ != nullptr) check_(*stack);
    const lazy::Op* op = op_.load(std::memory_order_acquire);
    if (op == nullptr) {
      op = &lazy::OpOf(handle);
      op_.store(op, std::memory_order_release);
    }
    lazy::Call(*op, stack);
  }

 private:
  const lazy::ArgumentCheck check_;
  std::atomic<const lazy::Op*> op_{nullptr};
};

// A view shares its storage with its argument, which a call on aliases would lose.
bool IsView(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  }
  return false;
}

// new_empty_strided and the like: all they do is ask for an empty tensor, which needs no record.
bool IsFactory(const c10::FunctionSchema& schema) { return schema.argumentIndexWithName("device").has_value(); }

// as_strided_ and its like: sizes and strides are all that they write.
bool ChangesGeometryAlone(const c10::OperatorHandle& handle) {
  return handle.hasTag(at::Tag::inplace_view) && !handle.hasKernelForDispatchKey(DispatchKey::CPU);
}

bool IsRecorded(const c10::OperatorHandle& handle) {
  if (handle.hasKernelForDispatchKey(DispatchKey::PrivateUse1) || ChangesGeometryAlone(handle)) return false;
  if (lazy::FactsOf(handle).is_whole()) return true;
  if (IsView(handle.schema())) return false;
  if (handle.hasKernelForDispatchKey(DispatchKey::CPU)) return true;  // beside a composite form too: eager's runs it
  if (handle.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) return false;
  return handle.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) &&
         !IsFactory(handle.schema());
}

// The `_` fallback has one kernel for all operators, so it looks them up.
void RecordOther(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  CheckFork();
  TORCH_CHECK_NOT_IMPLEMENTED(!IsView(handle.schema()), handle.operator_name(),
                              ": a view without a kernel for device lazy");
  lazy::Call(lazy::OpOf(handle), stack);
}

void RefuseCall(const c10::OperatorHandle& handle, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, handle.operator_name(), ": quantized tensors are not supported on device lazy");
}

std::vector<c10::OperatorHandle>& RecordedOperators() {
  static auto* const operators = new std::vector<c10::OperatorHandle>;
  return *operators;
}

template <class Predicate>
std::vector<c10::OperatorHandle> RegisterRecorder(torch::Library& aten, Predicate is_recorded) {
  std::vector<c10::OperatorHandle> operators;
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const std::optional<c10::OperatorHandle> handle = dispatcher.findSchema(name);
    if (!handle.has_value() || !is_recorded(*handle)) continue;
    operators.push_back(*handle);
    std::optional<torch::CppFunction> unboxed = UnboxedRecorder(name);
    aten.impl(c10::toString(name).c_str(),
              unboxed ? *std::move(unboxed) : torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Recorder>()));
  }
  return operators;
}

}  // namespace

void RecordTheRest(torch::Library& aten) { RecordedOperators() = RegisterRecorder(aten, IsRecorded); }

void RunMembersAtOnce(torch::Library& aten, DispatchKey cpu_key) {
  const DispatchKey our_key =
      c10::toRuntimePerBackendFunctionalityKey(c10::toFunctionalityKey(cpu_key), c10::BackendComponent::PrivateUse1Bit);
  RegisterRecorder(aten, [=](const c10::OperatorHandle& handle) {
    return handle.hasKernelForDispatchKey(cpu_key) && !handle.hasKernelForDispatchKey(our_key);
  });
}

std::string OperatorClasses() {
  std::string lines;
  for (const c10::OperatorHandle& handle : RecordedOperators()) {
    const lazy::Op& op = lazy::OpOf(handle);
    lines += op.name + (op.immediate ? " immediate\n" : op.is_lowered() ? " compiled\n" : " recorded\n");
  }
  return lines;
}

void RecordOurs(torch::Library& ours) {
  for (const Rows family : AllRows()) {
    for (const lazy::Row& row : family) {
      if (row.check == nullptr) continue;
      ours.impl(row.name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Recorder>(row.check)));
    }
  }
}

void RecordOthers(torch::Library& fallback) {
  fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&RecordOther>());
}

void RefuseQuantized(torch::Library& fallback) {
  fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&RefuseCall>());
}

}  // namespace torch_lazy::device
