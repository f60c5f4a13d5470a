// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/size_family.h"

#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "base/flags.h"

namespace torch_lazy::lazy {
namespace {

// Two sorts of entries with one hash would cost time only.
size_t HashOf(absl::Span<const TrieNode* const> calls, const std::vector<bool>& live) {
  size_t hash = absl::HashOf(live);
  for (const TrieNode* call : calls) {
    hash = absl::HashOf(hash, call->op);
    for (const int32_t slot : call->operand_slots()) hash = absl::HashOf(hash, slot);
  }
  return hash;
}

}  // namespace

std::shared_ptr<SizeFamily> SizeFamilyOf(absl::Span<const TrieNode* const> calls, const std::vector<bool>& live) {
  static auto* const all = new absl::flat_hash_map<size_t, std::shared_ptr<SizeFamily>>;
  static auto* const lock = new std::mutex;
  const size_t hash = HashOf(calls, live);
  std::lock_guard<std::mutex> locked(*lock);
  if (static_cast<int64_t>(all->size()) >= base::Number(base::Option::kMaxKnownOps)) all->clear();
  std::shared_ptr<SizeFamily>& family = (*all)[hash];
  if (family == nullptr) family = std::make_shared<SizeFamily>();
  return family;
}

}  // namespace torch_lazy::lazy
