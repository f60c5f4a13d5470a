// SPDX-License-Identifier: Apache-2.0
#include "lazy/cuts/growing_sizes.h"

#include <algorithm>

#include "lazy/cuts/early_cuts.h"

namespace torch_lazy::lazy {
namespace {

constexpr size_t kFewestSame = 64;  // what is saved is a launch for each of their kernels
constexpr int kMostCompared = 4;    // pairs of traces, before all sizes are taken to grow

// The longest row of calls that are equal in both traces, which are equally long.
void FindSame(const Trace& trace, Trie::Waited* waited) {
  size_t begin = trace.path.size(), length = 0;
  const TrieNode* other = waited->end;
  const auto end_row = [&] {
    if (length > waited->same) {
      waited->same = length;
      waited->begin = begin;
    }
    length = 0;
  };
  for (size_t k = trace.path.size(); k-- > 0; other = other->parent) {
    const TrieNode& call = *trace.path[k];
    if (call.words() == other->words() && call.operand_slots() == other->operand_slots()) {
      begin = k;
      ++length;
    } else {
      end_row();
    }
  }
  end_row();
  if (waited->same < std::max(kFewestSame, trace.path.size() / 2)) waited->same = 0;
  waited->mostly_grows = waited->same == 0;
}

}  // namespace

std::vector<size_t> CutsAroundSizes(const Trace& trace) {
  const size_t n = trace.path.size();
  if (n < kFewestSame || trace.replays || trace.path.front()->parent == trace.trie->nowhere() || !HasDeviceQueue())
    return {};
  const TrieNode* const end = trace.path.back();
  Trie::Waited& waited = trace.trie->waited()[end->path_alike];
  if (waited.same == 0 && waited.end != nullptr && waited.end != end && waited.compared < kMostCompared) {
    ++waited.compared;
    if (waited.end->depth == end->depth && waited.end->op == end->op) FindSame(trace, &waited);
  }
  waited.end = end;
  if (waited.same == 0 && !waited.mostly_grows) return {};
  std::vector<size_t> cuts = {0, n};
  if (waited.same != 0) cuts = {0, waited.begin, waited.begin + waited.same, n};
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return n < kFewestEarlyCalls ? cuts : WithEarlyCuts(trace, std::move(cuts), /*is_launched=*/waited.same == 0);
}

}  // namespace torch_lazy::lazy
