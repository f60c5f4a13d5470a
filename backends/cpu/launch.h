// SPDX-License-Identifier: Apache-2.0
// Runs kernels over their ranges: the one parallel region.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/backend.h"

namespace torch_lazy::backends {

// Cheap launches run on the calling thread alone; the others share out all instances by cost. An
// error: there is no memory for scratch, and nothing has run.
absl::Status LaunchOnCpu(absl::Span<const BoundInstance> instances);

// Backend::OfferLaunches and Backend::Help.
void OfferLaunchesOnCpu(std::atomic<uint32_t>* offers);
bool HelpOnCpu();

}  // namespace torch_lazy::backends
