// SPDX-License-Identifier: Apache-2.0
// The passes that know what a graph is compiled for, in their order.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/passes/pass.h"

namespace torch_lazy::codegen {

// They run after those of ir/passes/pipeline, with these options.
absl::Span<const ir::Pass> Passes();
ir::PassOptions OptionsOfPasses(bool verify, const std::string& dump_folder);

// Of these or of those; null if there is none.
const ir::Pass* FindPass(absl::string_view name);

}  // namespace torch_lazy::codegen
