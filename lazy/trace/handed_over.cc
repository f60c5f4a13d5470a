// SPDX-License-Identifier: Apache-2.0
#include "lazy/trace/handed_over.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"

namespace torch_lazy::lazy {

std::vector<int64_t> BytesHandedOver(const std::vector<TrieNode*>& calls, const std::vector<TraceSlot>& slots,
                                     size_t begin, size_t end) {
  absl::flat_hash_map<int32_t, size_t> last_use;
  for (size_t k = begin; k < end; ++k) {
    for (const NodeOperand& operand : calls[k]->operands) last_use[operand.slot] = k;
  }
  std::vector<int64_t> bytes(end - begin + 1, 0);  // that begin to be handed over at each place, less those that end
  for (const auto& [slot, last] : last_use) {
    const TraceSlot& used = slots[static_cast<size_t>(slot)];
    const size_t made = std::max<size_t>(used.first_call + 1, begin);
    if (used.older || made > last) continue;
    bytes[made - begin] += static_cast<int64_t>(used.size_bytes);
    bytes[last + 1 - begin] -= static_cast<int64_t>(used.size_bytes);
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

}  // namespace torch_lazy::lazy
