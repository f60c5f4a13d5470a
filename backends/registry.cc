// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/null/null_backend.h"
#include "base/flags.h"

namespace torch_lazy::backends {

Backend& Get() {
  static Backend* const backend = [] {
    return base::Backend() == base::BackendChoice::kNull ? static_cast<Backend*>(new NullBackend)
                                                         : new CpuBackend;
  }();
  return *backend;
}

}  // namespace torch_lazy::backends
