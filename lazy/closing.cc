// SPDX-License-Identifier: Apache-2.0
#include "lazy/closing.h"

#include "base/flags.h"

namespace torch_lazy::lazy {

const char* MustCut(const Trace& trace) {
  if (trace.num_calls() >= static_cast<size_t>(base::Number(base::Option::kMaxTraceOps))) return "length";
  return nullptr;
}

}  // namespace torch_lazy::lazy
