// SPDX-License-Identifier: Apache-2.0
// The passes that hold for any graph, in their order.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "ir/passes/pass.h"

namespace torch_lazy::ir {

absl::Span<const Pass> Passes();
const Pass* FindPass(absl::Span<const Pass> passes, absl::string_view name);  // null if there is none

// Runs them all, as RunPasses does.
absl::StatusOr<Graph> Optimize(Graph graph, const PassOptions& options);

}  // namespace torch_lazy::ir
