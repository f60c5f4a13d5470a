// SPDX-License-Identifier: Apache-2.0
#include "lazy/lower/lower.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/flags.h"
#include "lazy/lower/lower_call.h"
#include "lazy/trace/trace_text.h"

namespace torch_lazy::lazy {

std::unique_ptr<LoweredTrace> Lower(const CallSequence& sequence, const Trace& trace, LowerOtherwise otherwise) {
  auto lowered = std::make_unique<LoweredTrace>();
  GraphWriter writer(trace, lowered.get(), sequence.calls().size());
  for (size_t k = 0; k < sequence.calls().size(); ++k) {
    const TrieNode& call = *sequence.calls()[k];
    writer.builder().set_origin(static_cast<int32_t>(k));
    const bool is_otherwise = otherwise(&writer, call, k);
    if (!is_otherwise && !sequence.IsLeftToAten(k) && LowerCall(&writer, call)) continue;
    if (!is_otherwise && !writer.AppendCall(call, k)) return nullptr;
    lowered->by_aten.push_back(static_cast<int32_t>(k));
  }
  if (!writer.Finish(sequence.live())) return nullptr;
  if (base::Number(base::Option::kDump) != 0) lowered->trace_text = TextOfTrace(sequence, trace);
  return lowered;
}

}  // namespace torch_lazy::lazy
