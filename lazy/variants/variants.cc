// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/variants.h"

#include <utility>

#include "base/flags.h"
#include "lazy/variants/autocast_weights_plan.h"
#include "lazy/variants/frozen_plan.h"
#include "lazy/variants/sized_plan.h"

namespace torch_lazy::lazy {
namespace {

// What is asked later may wrap what is asked before.
constexpr VariantKind kKinds[] = {
    {"sized", &SizedPlan::For},
    {"carry", &AutocastWeights::For},
    {"freeze", &FrozenPlan::For},
};

}  // namespace

absl::Span<const VariantKind> VariantKinds() { return kKinds; }

Variants Variants::For(const PlainPlan& plain, const Trace& trace) {
  std::vector<std::unique_ptr<Variant>> variants;
  for (const VariantKind& kind : kKinds) {
    if (base::IsDisabled(kind.name)) continue;
    if (std::unique_ptr<Variant> variant = kind.make(plain, trace, &AccountOf(kind.name)))
      variants.push_back(std::move(variant));
  }
  return Variants(std::move(variants));
}

std::shared_ptr<Runnable> Variants::Choose(std::shared_ptr<Runnable> plain, const Trace& trace, bool once) const {
  std::shared_ptr<Runnable> way = std::move(plain);
  for (const std::unique_ptr<Variant>& variant : variants_) {
    if (!variant->Guard(trace)) continue;
    if (std::shared_ptr<Runnable> better = variant->Prepare(way, trace, once)) way = std::move(better);
  }
  return way;
}

void Variants::Release() {
  for (const std::unique_ptr<Variant>& variant : variants_) variant->Release();
}

}  // namespace torch_lazy::lazy
