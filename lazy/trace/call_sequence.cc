// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/call_sequence.h"

#include <algorithm>
#include <utility>

#include "lazy/ops/call_settings.h"
#include "lazy/ops/deterministic.h"

namespace torch_lazy::lazy {

void AppendNames(absl::Span<const TrieNode* const> calls, std::string* names) {
  for (const TrieNode* call : calls) {
    *names += call->op->name;
    for (const int32_t slot : call->operand_slots()) names->append(reinterpret_cast<const char*>(&slot), sizeof slot);
  }
}

CallSequence::CallSequence(const TrieNode* end, std::vector<bool> live) : live_(std::move(live)) {
  for (const TrieNode* node = end; node->op != nullptr; node = node->parent) calls_.push_back(node);
  std::reverse(calls_.begin(), calls_.end());
  std::vector<int32_t> last_use(live_.size(), -1);
  for (size_t k = 0; k < calls_.size(); ++k) {
    for (const NodeOperand& operand : calls_[k]->operands) last_use[operand.slot] = static_cast<int32_t>(k);
    int32_t slot = calls_[k]->first_result_slot;
    for (const ResultShape& result : calls_[k]->shape->results) {
      if (result.defined && result.arg < 0) last_use[slot++] = static_cast<int32_t>(k);
    }
  }
  ends_.resize(calls_.size());
  for (size_t slot = 0; slot < live_.size(); ++slot) {
    if (!live_[slot] && last_use[slot] >= 0) ends_[last_use[slot]].push_back(static_cast<int32_t>(slot));
  }
}

bool CallSequence::IsDeterministic() const {
  return !calls_.empty() && AreDeterministic(SettingsOf(calls_.front()->words()[0]));
}

}  // namespace torch_lazy::lazy
