// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/size_family.h"

#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "backends/registry.h"
#include "base/fingerprint.h"
#include "base/flags.h"
#include "lazy/host/background.h"
#include "lazy/trace/call_sequence.h"

namespace torch_lazy::lazy {
namespace {

constexpr absl::string_view kLowered = "lowered";

// Two sorts of entries with one name would cost time only.
base::Fingerprint NameOf(absl::Span<const TrieNode* const> calls, const std::vector<bool>& live) {
  std::string bytes;
  for (const bool is_live : live) bytes.push_back(is_live ? 1 : 0);
  AppendNames(calls, &bytes);
  return base::FingerprintOf(bytes);
}

}  // namespace

bool SizeFamily::HasComeTwice() {
  std::lock_guard<std::mutex> lock(lock_);
  if (!has_come_twice_) has_come_twice_ = backends::Get().Recall(note_) == kLowered;
  return *has_come_twice_;
}

void SizeFamily::NoteThatItHas() {
  if (HasComeTwice()) return;
  std::lock_guard<std::mutex> lock(lock_);
  if (std::exchange(has_come_twice_, true) == true) return;
  InBackground([note = note_] { backends::Get().Keep(note, kLowered); });
}

std::shared_ptr<SizeFamily> SizeFamilyOf(absl::Span<const TrieNode* const> calls, const std::vector<bool>& live) {
  static auto* const all = new absl::flat_hash_map<base::Fingerprint, std::shared_ptr<SizeFamily>>;
  static auto* const lock = new std::mutex;
  const base::Fingerprint name = NameOf(calls, live);
  std::lock_guard<std::mutex> locked(*lock);
  if (static_cast<int64_t>(all->size()) >= base::Number(base::Option::kMaxKnownOps)) all->clear();
  std::shared_ptr<SizeFamily>& family = (*all)[name];
  if (family == nullptr) family = std::make_shared<SizeFamily>(absl::StrCat("calls ", name.ToString()));
  return family;
}

}  // namespace torch_lazy::lazy
