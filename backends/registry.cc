// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/null/null_backend.h"
#include "backends/stand_in/stand_in_backend.h"
#include "base/flags.h"

namespace torch_lazy::backends {

Backend& Get() {
  static Backend* const backend = []() -> Backend* {
    switch (base::Backend()) {
      case base::BackendChoice::kNull:
        return new NullBackend;
      case base::BackendChoice::kStandIn:
        return new StandInBackend;
      case base::BackendChoice::kAuto:
      case base::BackendChoice::kCpu:
      case base::BackendChoice::kCuda:
        return new CpuBackend;
    }
    return nullptr;
  }();
  return *backend;
}

}  // namespace torch_lazy::backends
