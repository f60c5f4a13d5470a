// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/cut_rule.h"

#include <algorithm>

#include "base/flags.h"
#include "codegen/plan/plan.h"
#include "lazy/eager/eager_device.h"
#include "lazy/ops/deterministic.h"

namespace torch_lazy::lazy {
namespace {

int64_t MaxTraceBytes() {
  constexpr int64_t kOfHost = int64_t{4} << 30;
  const int64_t chosen = base::Number(base::Option::kMaxTraceBytes);
  if (chosen != 0) return chosen;
  static const int64_t usual =
      GpuAllocator() == nullptr ? kOfHost
                                : static_cast<int64_t>(GpuAllocator()->getMemoryInfo(EagerDevice().index()).second / 2);
  return usual;
}

// True if the pure step that ends here shall not be its trace's last, and there is room for another.
bool WantsMorePureSteps(Trace* trace) {
  const int steps = ++trace->pure_steps;
  return steps < trace->pure_steps_wanted &&
         HasRoomFor(*trace, trace->path.size() / steps + 1, trace->new_bytes / steps);
}

// A known trace is left whole, and so is one that is to repeat.
bool EndsChunk(const Trace& trace, bool grown) {
  return !trace.replays && !AreDeterministic(trace.settings()) && (grown || !trace.at->node->entries.empty()) &&
         Chunks::EndHere(trace.path) && (base::Number(base::Option::kDisable) == 0 || !base::IsDisabled("chunks"));
}

// Note [Unlike steps], after a call that was new to the trie.
void FindUnlikeSteps(Trace* trace) {
  const auto tail_of = [&](size_t end) { return UnlikeSteps::Tail(trace->path, trace->slots, end); };
  const size_t n = trace->path.size();
  if (n >= UnlikeSteps::kFewestCalls && trace->trie->HasTails() && trace->trie->IsTail(tail_of(n))) {
    trace->trie->MarkStep(trace->at);
  } else if (const size_t end = trace->unlike_steps.Advance(trace->path, trace->slots, trace->replayed); end != 0) {
    trace->trie->NoteTail(tail_of(end), trace->path[end - 1]->expected);
  }
}

}  // namespace

const char* MustCut(Trace* trace, bool grown) {
  Expected& at = *trace->at;
  // A trace on a known path need not look again: where it held several steps is written at the node.
  const ClosedStep step = grown ? trace->steps.Advance(trace->path, trace->slots) : ClosedStep{};
  if (step.period != 0) {
    at.is_pure = step.is_pure;
    at.node->trie.MarkStep(&at, step.is_pure && trace->pure_steps_wanted > 1 ? 0 : static_cast<uint32_t>(step.period));
  }
  if (grown && step.period == 0 && !at.ends_trace()) FindUnlikeSteps(trace);
  const bool holds_several = at.is_pure && trace->pure_steps_wanted > 1;
  if (at.ends_trace() && !(at.is_pure && WantsMorePureSteps(trace))) {
    trace->period = at.closes_step || holds_several ? 0 : at.period;
    trace->ends_step = step.period == 0 || holds_several;
    return trace->ends_step ? nullptr : "step";
  }
  if (trace->chunks.is_on() && EndsChunk(*trace, grown)) {
    trace->ends_step = trace->ends_chunk = true;
    return nullptr;
  }
  if (trace->path.size() >= static_cast<size_t>(base::Number(base::Option::kMaxTraceOps))) return "length";
  if (trace->new_bytes >= MaxTraceBytes()) return "bytes";
  return nullptr;
}

int PureStepsAfter(const Trace& trace, bool shares_launches) {
  constexpr int kTimes = 4;
  return trace.at->is_pure && shares_launches
             ? std::min(kTimes * trace.pure_steps_wanted, codegen::Kernel::Exact::kMost)
             : 1;
}

bool HasRoomFor(const Trace& trace, size_t calls, int64_t bytes) {
  return trace.path.size() + calls < static_cast<size_t>(base::Number(base::Option::kMaxTraceOps)) &&
         trace.new_bytes + bytes < MaxTraceBytes();
}

}  // namespace torch_lazy::lazy
