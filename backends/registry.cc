// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cpu/cpu_backend.h"

namespace torch_lazy::backends {

Backend& Get() {
  static Backend& backend = *new CpuBackend;
  return backend;
}

}  // namespace torch_lazy::backends
