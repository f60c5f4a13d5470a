// SPDX-License-Identifier: Apache-2.0
#include "test/lazy/recording.h"

#include <cstring>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/flags.h"
#include "base/metrics.h"
#include "ir/parse.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/memory.h"
#include "lazy/host/background.h"
#include "lazy/host/lock.h"
#include "lazy/lower/lowering.h"
#include "lazy/ops/rows.h"
#include "lazy/record/record.h"
#include "lazy/run/plans.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"
#include "test/lazy/fake_backend.h"

namespace torch_lazy::lazy {
namespace {

bool LowerAdd(Lowering& call) {
  const ir::DType type = call.ComputeType();
  const ir::Value x = call.Operand(0, type), y = call.Operand(1, type);
  call.Return(0, call.b().Fma(call.b().FullLike(call.Number(2, type), x), y, x));
  return true;
}

bool LowerMul(Lowering& call) {
  const ir::DType type = call.ComputeType();
  call.Return(0, call.b().Mul(call.Operand(0, type), call.Operand(1, type)));
  return true;
}

constexpr Row kRows[] = {
    {.name = "aten::*", .flags = kAsDeclared},
    {.name = "aten::add.Tensor", .lower = LowerAdd, .flags = kTakesAllNumbers},
    {.name = "aten::copy_", .flags = kExact},
    {.name = "aten::mul.Tensor", .lower = LowerMul},
};

[[maybe_unused]] const bool are_registered = [] {
  for (const Row& row : kRows) RegisterRow(row);
  return true;
}();

template <class Number>
at::Tensor HoldingAny(const std::vector<Number>& values) {
  const size_t size_bytes = values.size() * sizeof(Number);
  c10::Storage content = NewContent(size_bytes);
  std::memcpy(content.mutable_data(), values.data(), size_bytes);
  return MakeTensor(MakeStorage(std::move(content)), c10::CppTypeToScalarType<Number>::value,
                    {static_cast<int64_t>(values.size())}, {1});
}

}  // namespace

const Op& OpNamed(const char* name, const char* overload) {
  return OpOf(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

at::Tensor Record(const Op& op, std::vector<c10::IValue> arguments) {
  torch::jit::Stack stack = std::move(arguments);
  Call(op, &stack);
  return stack.empty() ? at::Tensor() : stack.back().toTensor();
}

at::Tensor Holding(const std::vector<float>& values) { return HoldingAny(values); }
at::Tensor Holding(const std::vector<int64_t>& values) { return HoldingAny(values); }

at::Tensor Add(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  return Record(OpNamed("aten::add", "Tensor"), {x, y, alpha});
}

at::Tensor Mul(const at::Tensor& x, const at::Tensor& y) { return Record(OpNamed("aten::mul", "Tensor"), {x, y}); }

void AddInPlace(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  Record(OpNamed("aten::add_", "Tensor"), {x, y, alpha});
}

at::Tensor Gather(const at::Tensor& x, const at::Tensor& index) {
  return Record(OpNamed("aten::gather"), {x, 0, index, false});
}

std::vector<float> ValuesOf(const at::Tensor& tensor) {
  const at::Tensor alias = SyncToAlias(tensor, "test").contiguous();
  return {alias.const_data_ptr<float>(), alias.const_data_ptr<float>() + alias.numel()};
}

std::shared_ptr<Trace> PendingTrace() {
  Locked lock(DeviceLock());
  return ThreadTrace();
}

std::string CallsOf(const Trace& trace) {
  return absl::StrJoin(trace.path, " ", [](std::string* text, const TrieNode* call) {
    absl::StrAppend(text, absl::StripPrefix(call->op->name, "aten::"));
  });
}

// Plans are forgotten when there are more than they may be.
void ForgetPlans() {
  ASSERT_TRUE(base::SetOption("max_known_ops", "1").ok());
  for (int k = 0; k < 2; ++k) {
    LoweredTrace lowered;
    lowered.graph = *ir::Parse("graph @none(%x: f32[s0]) {\n  %0 = neg %x : f32[s0]\n  return %0\n}");
    lowered.symbols = {1};
    bool known = false;
    PlanOf(&lowered, /*deterministic=*/false, &known);
  }
  ASSERT_TRUE(base::SetOption("max_known_ops", "524288").ok());
}

void AwaitBackground() {
  std::promise<void> done;
  InBackground([&] { done.set_value(); });
  done.get_future().wait();
}

void RecordingTest::SetUp() {
  SetOption("compile", "off");
  SetOption("overlap", "0");
  SetOption("disable", "at_once");
  static const bool are_shapes_known = [] {
    const at::Tensor x = Holding(std::vector<float>{1, 2});
    AddInPlace(x, Mul(Add(x, x), x));
    Gather(x, Holding(std::vector<int64_t>{1, 0}));
    return true;
  }();
  ASSERT_TRUE(are_shapes_known);
  SyncAll("test");
  {
    Locked lock(DeviceLock());
    CurrentTrie() = nullptr;
  }
  ForgetPlans();
  AwaitBackground();
  base::ResetMetrics();
  backends::Fake().Reset();
}

void RecordingTest::TearDown() {
  backends::Fake().FinishCompiling();
  SyncAll("test");
  SetOption("compile", "async");
  SetOption("overlap", "1");
  SetOption("disable", "");
}

void RecordingTest::SetOption(const char* name, const char* text) { ASSERT_TRUE(base::SetOption(name, text).ok()); }

}  // namespace torch_lazy::lazy
