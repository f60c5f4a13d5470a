// SPDX-License-Identifier: Apache-2.0
// How fast the machine's memory is, to judge kernels by.
#pragma once

namespace torch_lazy::backends {

double CopySpeedOfCpu();  // Backend::CopySpeed

}  // namespace torch_lazy::backends
