// SPDX-License-Identifier: Apache-2.0
// The reference meaning of reductions.
#pragma once

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "ir/host_walk.h"

namespace torch_lazy::ir {

// `sizes`: of the result.
HostValue Reduce(const Node& node, const HostValue& in, Sizes sizes);
HostValue Share(const Node& node, const HostValue& in, Sizes sizes);
absl::StatusOr<HostValue> ArgReduce(const Node& node, const HostValue& in, Sizes sizes);

}  // namespace torch_lazy::ir
