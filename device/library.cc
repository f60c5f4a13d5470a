// SPDX-License-Identifier: Apache-2.0
// torch.ops.torch_lazy: what every language can call, also after a bare dlopen; and every model file.
#include <string>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include "base/metrics.h"
#include "device/accelerator.h"
#include "device/fork.h"
#include "device/recorder.h"
#include "lazy/cuts/sync.h"
#include "lazy/eager/current_device.h"
#include "lazy/eager/eager_device.h"
#include "lazy/explain/efforts.h"
#include "lazy/explain/explain.h"
#include "lazy/host/ledger.h"
#include "lazy/host/run_thread.h"
#include "lazy/trace/history.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::device {
namespace {

void Sync() {
  CheckFork();
  lazy::SyncAll("sync");
}

// Runs what is pending and waits for the GPU.
void Synchronize(int64_t device) {
  CheckFork();
  c10::impl::VirtualGuardImpl(c10::kPrivateUse1).synchronizeDevice(static_cast<c10::DeviceIndex>(device));
}

// Contents on a GPU are PyTorch's allocator's, which counts.
void CountGpuBytes() {
  c10::DeviceAllocator* const gpu = lazy::GpuAllocator();
  if (gpu == nullptr) return;
  constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  int64_t current = 0, peak = 0;
  for (int device = 0; device < lazy::NumDevices(); ++device) {
    const auto bytes = gpu->getDeviceStats(static_cast<c10::DeviceIndex>(device)).allocated_bytes[kAll];
    current += bytes.current;
    peak += bytes.peak;
  }
  base::Count(base::Counter::kBytesLive, current - base::Get(base::Counter::kBytesLive));
  base::RaiseTo(base::Counter::kBytesPeak, peak);
}

std::string Metrics() {
  lazy::RunThread::Get().Drain();
  CountGpuBytes();
  return lazy::MetricsJson();
}

void ResetMetrics() {
  lazy::RunThread::Get().Drain();
  for (int device = 0; lazy::GpuAllocator() != nullptr && device < lazy::NumDevices(); ++device) {
    lazy::GpuAllocator()->resetPeakStats(static_cast<c10::DeviceIndex>(device));
  }
  base::ResetMetrics();
  lazy::ResetEfforts();
  lazy::ForgetHistory();
}

TORCH_LIBRARY(torch_lazy, m) {
  m.def("sync() -> ()", &Sync);
  m.def("metrics() -> str", &Metrics);
  m.def("explain() -> str", &lazy::Explain);
  m.def("operators() -> str", &OperatorClasses);
  m.def("eager_device() -> str", [] { return c10::DeviceTypeName(lazy::EagerDevice().type(), /*lower_case=*/true); });
  m.def("device_count() -> int", [] { return static_cast<int64_t>(lazy::NumDevices()); });
  m.def("current_device() -> int", [] { return static_cast<int64_t>(lazy::CurrentDevice()); });
  m.def("set_device(int device) -> ()", [](int64_t device) { lazy::SetCurrentDevice(static_cast<int>(device)); });
  m.def("reset_metrics() -> ()", &ResetMetrics);
  m.def("synchronize(int device=-1) -> ()", &Synchronize);
  // eager_overrides/fused_attention.cc; of four dims: (batch, heads, length, width)
  m.def(
      "attention(Tensor query, Tensor key, Tensor value, Tensor? bias, int form, bool keeps_sums, bool is_causal, "
      "float? scale, "
      "float dropout=0., Scalar? seed=None, Scalar? offset=None) -> (Tensor, Tensor, Tensor)");
  m.def(
      "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor out, Tensor sums, "
      "Tensor? draw, "
      "int form, bool[4] wanted, bool is_causal, float? scale, float dropout=0., Scalar? seed=None, Scalar? "
      "offset=None) "
      "-> (Tensor, Tensor, Tensor, Tensor)");
  // eager_overrides/cudnn_rnn.cc
  m.def(
      "cudnn_rnn(Tensor input, Tensor weights, Tensor hx, Tensor? cx, Tensor(a!)? dropout_state, int mode, int "
      "hidden_size, int proj_size, "
      "int num_layers, bool batch_first, float dropout, bool train, bool bidirectional, int[] batch_sizes, bool tf32) "
      "-> (Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "cudnn_rnn_backward(Tensor input, Tensor weights, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, "
      "Tensor? grad_hy, "
      "Tensor? grad_cy, Tensor? dropout_state, Tensor(a!) reserve, int mode, int hidden_size, int proj_size, int "
      "num_layers, "
      "bool batch_first, float dropout, bool train, bool bidirectional, int[] batch_sizes, bool[4] wanted, bool tf32) "
      "-> (Tensor, Tensor, Tensor, Tensor)");
  // eager_overrides/dropout.cc
  m.def(
      "dropout(Tensor input, float p, float scale, Scalar threshold, Scalar seed, Scalar offset, Scalar threads, int "
      "width, "
      "int[] order) -> (Tensor, Tensor)");
  // eager_overrides/composites.cc; the result is as long as the range
  m.def("arange(Tensor(a!) result, Scalar start, Scalar end, Scalar step) -> Tensor(a!)");
  m.def("_is_in_use() -> bool", &IsLazyInUse);
  m.def("_count_questions(int more) -> ()", [](int64_t more) { CountQuestions(static_cast<int>(more)); });
  m.def("is_in_bad_fork() -> bool", [] { return fork_state.load() == ForkState::kForkedAfterUse; });
}

}  // namespace
}  // namespace torch_lazy::device
