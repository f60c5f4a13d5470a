// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/segments.h"

#include <algorithm>

#include "base/log.h"
#include "lazy/calls/append_call.h"
#include "lazy/ops/deterministic.h"
#include "lazy/variants/entry.h"

namespace torch_lazy::lazy {
namespace {

// Calls [begin, end) of `whole`, replayed into a trace of their own: slots are numbered anew, contents are shared.
class Segment {
 public:
  // `root`: of the trie, that its calls begin at.
  Segment(Trace* whole, size_t begin, size_t end, const TrieNode& root) : whole_(*whole), end_(end) {
    part_.trie = whole->trie;
    part_.at = root.expected;
    part_.cut = whole->cut;
    renumbered_.assign(whole->slots.size(), -1);
    for (size_t k = begin; k < end; ++k) Replay(*whole->path[k]);
  }

  Trace& part() { return part_; }

  // What a program that waited at the part's end would have found alive: it may wait there another time.
  std::vector<bool> Live() const {
    std::vector<bool> needed(whole_.slots.size(), false);
    for (size_t k = end_; k < whole_.path.size(); ++k) {
      for (const NodeOperand& operand : whole_.path[k]->operands) needed[operand.slot] = true;
    }
    const AliveAfter alive(whole_, end_);
    std::vector<bool> live(part_.slots.size(), false);
    for (size_t s = 0; s < renumbered_.size(); ++s) {
      const int32_t slot = renumbered_[s];
      if (slot < 0) continue;
      live[slot] = part_.slots[slot].written && (needed[s] || alive(s));
    }
    return live;
  }

  // After the run, be it that a call failed.
  void TakeBack() {
    for (size_t s = 0; s < renumbered_.size(); ++s) {
      const int32_t slot = renumbered_[s];
      if (slot >= 0 && part_.slots[slot].content) whole_.slots[s].content = part_.slots[slot].content;
    }
  }

 private:
  int32_t SlotOf(int32_t slot) {
    if (renumbered_[slot] < 0) {
      renumbered_[slot] = static_cast<int32_t>(part_.slots.size());
      part_.slots.push_back({whole_.slots[slot].content, nullptr, whole_.slots[slot].size_bytes, /*external=*/true});
      part_.slots.back().unwritten = whole_.slots[slot].unwritten;
      part_.slots.back().serial = whole_.slots[slot].serial;
    }
    return renumbered_[slot];
  }

  void Replay(const TrieNode& call) {
    c10::SmallVector<int32_t, 8> slots;
    for (const NodeOperand& operand : call.operands) {
      slots.push_back(SlotOf(operand.slot));
      if (operand.written) part_.slots[slots.back()].written = true;
    }
    bool grown = false;
    TrieNode* node = NodeLike(call, slots, &part_, &grown);
    int32_t result_slot = call.first_result_slot;
    for (const ResultShape& result : call.shape->results) {
      if (!result.defined || result.arg >= 0) continue;
      renumbered_[result_slot++] = static_cast<int32_t>(part_.slots.size());
      part_.slots.push_back({c10::Storage(), nullptr, result.size_bytes, /*external=*/false, /*written=*/true});
    }
    part_.at = node->expected;
    part_.path.push_back(node);
    for (size_t i = 0; i < call.number_args.size(); ++i) {
      part_.numbers.push_back(std::move(whole_.numbers[call.expected->first_number + i]));
    }
  }

  Trace& whole_;
  const size_t end_;
  Trace part_;
  std::vector<int32_t> renumbered_;  // slot of the whole -> slot of the part
};

// A trace of its own takes such a part longer to launch than it saves where a wait comes at the step's end.
bool HasShortPart(const Trace& trace, size_t end) {
  constexpr size_t kFewestCalls = 32;
  return std::min(end, trace.path.size() - end) < kFewestCalls;
}

// A program that waits inside its step is cut there, so that its traces begin in one step and end in the next. Where it
// waits now and then at the step's end as well, the same calls would be cut at two places. So a trace is run in two
// parts where its last write to a storage older than itself leaves only such storages to what follows: parameters,
// after the optimizer. The number of calls up to there; 0 or all of them if there is no such place. A short part after
// or before a plain copy is none: a program that collects rows writes them at each wait.
size_t EndOfUpdates(const Trace& trace) {
  size_t end = trace.path.size();
  while (end > 0 && !trace.Updates(*trace.path[end - 1])) --end;
  if (end > 0 && trace.path[end - 1]->op->writes_exactly && HasShortPart(trace, end)) return 0;
  for (size_t k = end; k < trace.path.size(); ++k) {
    for (const NodeOperand& operand : trace.path[k]->operands) {
      const Trace::Slot& slot = trace.slots[operand.slot];
      if (!slot.older && slot.first_call < end) return 0;
    }
  }
  return end;
}

}  // namespace

std::vector<size_t> PartsOf(const Trace& trace) {
  const size_t n = trace.path.size();
  if (n == 0) return {0, 0};
  std::vector<size_t> cuts;
  if (trace.period != 0) {
    cuts = {0, n - 2 * trace.period, n - trace.period, n};
  } else {
    TrieNode* end = trace.path.back();
    if (end->update_end < 0) end->update_end = static_cast<int32_t>(EndOfUpdates(trace));
    const auto place = static_cast<size_t>(end->update_end);
    const bool is_short = place != 0 && place != n && HasShortPart(trace, place);
    const bool often = is_short && end->short_parts == kMostShortParts;
    end->short_parts += is_short && !often;
    cuts = {0, often ? n : place, n};
  }
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

void RunParts(Trace* trace, const Parts& parts) {
  const std::vector<size_t>& cuts = parts.cuts;
  const TrieNode* root = parts.have_sizes ? trace->path.front()->parent : trace->trie->root();
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::unique_ptr<Segment> segment;
    Entry* entry = nullptr;
    std::vector<bool> live;
    {
      Locked lock(DeviceLock());
      segment = std::make_unique<Segment>(trace, cuts[i], cuts[i + 1], *root);
      live = segment->Live();
      Expected* const end = segment->part().at;
      const bool is_step = trace->period != 0 && cuts[i + 1] - cuts[i] == trace->period;
      if (is_step) end->is_pure = trace->at->is_pure;
      if (is_step && !end->is_pure) segment->part().trie->RememberStep(*end->node);
      const bool begins_early = parts.begin_early && i + 2 < cuts.size();
      if (is_step || begins_early) segment->part().trie->MarkStep(end);
      if (begins_early) segment->part().trie->GiveSequel(end->node);
      if (parts.begin_early) end->node->waits = TrieNode::kIsPart;
      if (parts.have_sizes) segment->part().trie->RememberPart(end->node, /*is_last=*/i + 2 == cuts.size());
      root = trace->trie->RootAfter(end->node);
      entry = EntryFor(segment->part(), live);
    }
    // Inside its last call a step is cut once: when it is found to be one, which the step before it tells as well. Who
    // waits for kernels has them all the same: op by op its digits would be others than in the steps that follow.
    const bool inside_call = trace->period != 0 && !trace->ends_step && cuts[i + 1] == trace->path.size() &&
                             CompilationFor(AreDeterministic(trace->settings())) != base::CompileMode::kSync;
    try {
      entry->Run(&segment->part(), /*once=*/inside_call);
      trace->op_by_op = segment->part().op_by_op && (i == 0 || trace->op_by_op);
      trace->is_new = trace->is_new || segment->part().is_new;
    } catch (...) {
      segment->TakeBack();
      throw;
    }
    segment->TakeBack();
  }
}

}  // namespace torch_lazy::lazy
