// SPDX-License-Identifier: Apache-2.0
#include "lazy/eager/on_host.h"

#include <atomic>

#include <c10/util/Exception.h>

#include "backends/registry.h"

namespace torch_lazy::lazy {
namespace {

std::atomic<bool> is_gpu_in_use{false};

}  // namespace

bool IsGpuInUse() { return is_gpu_in_use.load(std::memory_order_relaxed); }

bool IsOnHost() {
  static const bool on_host = [] {
    const auto& backend = backends::TryGet();
    TORCH_CHECK(backend.ok(), "lazy: ", std::string(backend.status().message()));
    is_gpu_in_use = !(*backend)->on_host();
    return (*backend)->on_host();
  }();
  return on_host;
}

}  // namespace torch_lazy::lazy
