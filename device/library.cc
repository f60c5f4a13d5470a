// SPDX-License-Identifier: Apache-2.0
// torch.ops.torch_lazy: what every language can call, also after a bare dlopen.
#include <string>

#include <torch/library.h>

#include "base/flags.h"
#include "base/metrics.h"
#include "device/fork.h"
#include "device/recorder.h"
#include "lazy/explain.h"
#include "lazy/storage.h"

namespace torch_lazy::device {
namespace {

void Sync() {
  CheckFork();
  lazy::SyncAll("sync");
}

void SetOption(std::string name, std::string value) {
  const absl::Status status = base::SetOption(name, value);
  TORCH_CHECK_VALUE(status.ok(), "set_option: ", std::string(status.message()));
}

TORCH_LIBRARY(torch_lazy, m) {
  m.def("sync() -> ()", &Sync);
  m.def("metrics() -> str", &base::MetricsJson);
  m.def("explain() -> str", &lazy::Explain);
  m.def("operators() -> str", &OperatorClasses);
  m.def("reset_metrics() -> ()", &base::ResetMetrics);
  m.def("set_option(str name, str value) -> ()", &SetOption);
  m.def("is_in_bad_fork() -> bool", [] { return fork_state.load() == ForkState::kForkedAfterUse; });
}

}  // namespace
}  // namespace torch_lazy::device
