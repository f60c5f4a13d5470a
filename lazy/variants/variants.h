// SPDX-License-Identifier: Apache-2.0
// The variants of one entry, and the list of all that there are: Note [Variants] in variant.h.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "lazy/host/ledger.h"
#include "lazy/variants/plain_plan.h"
#include "lazy/variants/variant.h"

namespace torch_lazy::lazy {

struct VariantKind {
  const char* name;  // of its account, and of the word of option `disable` that does without it
  // For an entry with this plan, which must outlive it. Null if the variant has nothing to do there. The variant tells
  // the account what it tries, and how often that is used.
  std::unique_ptr<Variant> (*make)(const PlainPlan& plain, const Trace& trace, Account* account);
};

// In the order in which they are asked.
absl::Span<const VariantKind> VariantKinds();

class Variants {
 public:
  Variants() = default;
  explicit Variants(std::vector<std::unique_ptr<Variant>> variants) : variants_(std::move(variants)) {}
  // Those that have something to do for the plan, which is ready, on such traces.
  static Variants For(const PlainPlan& plain, const Trace& trace);

  // The way to run the trace, where `plain` is one.
  std::shared_ptr<Runnable> Choose(std::shared_ptr<Runnable> plain, const Trace& trace, bool once) const;
  void Release();

 private:
  std::vector<std::unique_ptr<Variant>> variants_;
};

}  // namespace torch_lazy::lazy
