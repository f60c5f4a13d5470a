// SPDX-License-Identifier: Apache-2.0
#include "lazy/frozen_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"

namespace torch_lazy::lazy {
namespace {

bool IsDisabled() {
  const std::string disabled = base::Text(base::Option::kDisable);
  const std::vector<absl::string_view> names = absl::StrSplit(disabled, ',');
  return std::find(names.begin(), names.end(), "freeze") != names.end();
}

}  // namespace

std::unique_ptr<FrozenPlan> FrozenPlan::For(const Entry& entry, const Trace& trace) {
  if (IsDisabled() || !backends::Get().computes() || !CanPackConvolutions()) return nullptr;
  std::vector<int32_t> slots = ConstantSlots(entry, trace);
  return slots.empty() ? nullptr : std::unique_ptr<FrozenPlan>(new FrozenPlan(entry, std::move(slots)));
}

bool FrozenPlan::HaveStayed(const Trace& trace) {
  constexpr int kMostPatience = 1 << 16;
  std::vector<uint64_t> stamps;
  for (const int32_t s : slots_) stamps.push_back(trace.slots[s].inherits ? 0 : trace.slots[s].stamp);
  const bool known = std::find(stamps.begin(), stamps.end(), uint64_t{0}) == stamps.end();
  if (known && stamps == stamps_) return ++equal_runs_ >= patience_;
  stamps_ = std::move(stamps);
  equal_runs_ = 0;
  if (!has_constants_) return false;
  patience_ = std::min(2 * patience_, kMostPatience);
  has_constants_ = false;
  for (PackedConvolution& convolution : frozen_->rest.convolutions) {
    convolution.packed_weight.reset();
    convolution.bias.reset();
  }
  return false;
}

bool FrozenPlan::IsCompiled(const Trace& trace) {
  if (bound_ != nullptr) return true;
  bool known = false;
  if (!tried_) {
    tried_ = true;
    frozen_ = Freeze(entry_, trace, slots_);
    if (frozen_ == nullptr) return false;
    planned_constants_ = PlanOf(std::exchange(frozen_->constants.graph, {}), &frozen_->constants.symbols, &known);
    planned_rest_ = PlanOf(std::exchange(frozen_->rest.graph, {}), &frozen_->rest.symbols, &known);
  }
  if (frozen_ == nullptr) return false;
  const bool constants = planned_constants_->Want(frozen_->constants.symbols, 1);
  if (!planned_rest_->Want(frozen_->rest.symbols, 1) || !constants) return false;
  bound_ = std::make_unique<BoundPlan>(entry_, frozen_->rest, *planned_rest_);
  return true;
}

// The constants are the outputs of a run, on a trace that has slots for them behind its own.
void FrozenPlan::FindConstants(const Trace& trace) {
  LoweredTrace& constants = frozen_->constants;
  Trace scratch;
  scratch.numbers = trace.numbers;
  scratch.slots.resize(trace.slots.size() + planned_constants_->graph().outputs.size());
  for (const int32_t slot : constants.param_slots) scratch.slots[slot].content = trace.slots[slot].content;
  constants.output_slots.clear();
  for (size_t slot = trace.slots.size(); slot < scratch.slots.size(); ++slot) {
    constants.output_slots.push_back(static_cast<int32_t>(slot));
  }
  BoundPlan(entry_, constants, *planned_constants_).Run(&scratch);
  auto made = scratch.slots.begin() + static_cast<ptrdiff_t>(trace.slots.size());
  for (PackedConvolution& convolution : frozen_->rest.convolutions) {
    const c10::Storage weight = (made++)->content;
    convolution.Pack(weight, convolution.form.has_bias ? (made++)->content : c10::Storage());
  }
  numbers_ = NumbersOf(constants, trace);
  has_constants_ = true;
  LAZY_LOG(1, "parameters have stayed for ", equal_runs_, " runs: ", frozen_->rest.convolutions.size(), " convolutions are packed");
}

const BoundPlan* FrozenPlan::PlanFor(const Trace& trace) {
  if (!HaveStayed(trace) || !IsCompiled(trace)) return nullptr;
  if (!has_constants_ || numbers_ != NumbersOf(frozen_->constants, trace)) FindConstants(trace);
  return bound_.get();
}

}  // namespace torch_lazy::lazy
