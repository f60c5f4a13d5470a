// SPDX-License-Identifier: Apache-2.0
// 128-bit names of graphs, stable over runs. A graph's own name does not count.
#pragma once

#include "base/fingerprint.h"
#include "ir/graph.h"

namespace torch_lazy::ir {

base::Fingerprint FingerprintOf(const Graph& graph);  // equal for equal graphs

base::Fingerprint SkeletonOf(const Graph& graph);  // equal also for graphs that differ in their symbols alone

}  // namespace torch_lazy::ir
