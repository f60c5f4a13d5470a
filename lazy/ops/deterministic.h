// SPDX-License-Identifier: Apache-2.0
// Traces whose results are to be the same from run to run: torch.use_deterministic_algorithms().
//
// The interpreter and a kernel round differently, and so may two plans of one graph, or two libraries. So nothing that
// such a trace does may follow from when a kernel is ready or from what was faster: it waits for its kernels
// (CompilationFor), its plans are no other's (plans.h), and libraries are chosen by rule (tuned_product.h). All that
// counts: docs/design/repeatable.md.
#pragma once

#include <cstdint>

#include "base/flags.h"

namespace torch_lazy::lazy {

inline constexpr uint32_t kDeterministic = 1 << 8;  // among a call's settings (call_settings.h)
inline bool AreDeterministic(uint32_t settings) { return (settings & kDeterministic) != 0; }

// Option `compile`, as it is for such traces or for others.
inline base::CompileMode CompilationFor(bool deterministic) {
  const base::CompileMode mode = base::Compilation();
  return deterministic && mode == base::CompileMode::kAsync ? base::CompileMode::kSync : mode;
}

}  // namespace torch_lazy::lazy
