// SPDX-License-Identifier: Apache-2.0
// Runs kernels over their ranges: the one parallel region.
#pragma once

#include "absl/types/span.h"
#include "backends/backend.h"

namespace torch_lazy::backends {

// Cheap launches run on the calling thread alone; the others share out all instances by cost.
void LaunchOnCpu(absl::Span<const BoundInstance> instances);

}  // namespace torch_lazy::backends
