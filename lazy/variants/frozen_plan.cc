// SPDX-License-Identifier: Apache-2.0
#include "lazy/variants/frozen_plan.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"
#include "lazy/eager/eager_device.h"
#include "lazy/libraries/convolutions.h"
#include "lazy/libraries/cudnn_convolution.h"
#include "lazy/ops/deterministic.h"
#include "lazy/run/failed_kernels.h"

namespace torch_lazy::lazy {
namespace {

constexpr int64_t kEqualRuns = 3;  // before it is worth it

}  // namespace

struct FrozenPlan::Constants {
  Constants(const CallSequence& calls, LoweredTrace trace, std::vector<PackedConvolution> convolutions,
            std::shared_ptr<PlannedGraph> graph, std::shared_ptr<const ConstantContents> shared)
      : contents(std::move(shared)),
        rest(std::move(trace)),
        planned(std::move(graph)),
        plan(calls, rest, *planned, std::move(convolutions)) {}
  const std::shared_ptr<const ConstantContents> contents;  // null where they were packed anew
  const LoweredTrace rest;
  const std::shared_ptr<PlannedGraph> planned;
  ReadyPlan plan;
};

// Owns the constants in use, those used last in front. Runs may use them a little longer.
class FrozenPlan::Newest {
 public:
  static Newest& Get() {
    static Newest* const newest = new Newest;
    return *newest;
  }

  // They are in use.
  void Put(const std::shared_ptr<Constants>& constants) {
    std::shared_ptr<Constants> oldest;
    {
      std::lock_guard<std::mutex> lock(lock_);
      list_.remove(constants);
      list_.push_front(constants);
      if (list_.size() <= kMost) return;
      oldest = std::move(list_.back());
      list_.pop_back();
    }
    WaitForEagerDevice();  // another stream may still read them
  }

  void Remove(const std::shared_ptr<Constants>& constants) {
    std::lock_guard<std::mutex> lock(lock_);
    list_.remove(constants);
  }

 private:
  static constexpr size_t kMost = 8;
  std::mutex lock_;
  std::list<std::shared_ptr<Constants>> list_;
};

std::unique_ptr<Variant> FrozenPlan::For(const PlainPlan& plain, const Trace& trace, Account* account) {
  if (!backends::Get().computes() || !CanPackConvolutions()) return nullptr;
  ConstantSlots slots = FindConstantSlots(plain.calls(), trace);
  if (slots.params.empty()) return nullptr;
  return std::unique_ptr<Variant>(new FrozenPlan(plain.calls(), std::move(slots), account));
}

// Folded weights round otherwise, so where results are compared with ATen's nothing is frozen.
bool FrozenPlan::Guard(const Trace& trace) {
  if (base::Number(base::Option::kCompare) != 0) return false;
  std::vector<uint64_t> stamps;
  for (const int32_t s : slots_.params) stamps.push_back(trace.slots[s].stamp);
  const bool known = std::find(stamps.begin(), stamps.end(), uint64_t{0}) == stamps.end();
  if (known && stamps == stamps_) {
    patience_.Run();
    return patience_.IsWorth(kEqualRuns);
  }
  stamps_ = std::move(stamps);
  Thaw();
  return false;
}

FrozenPlan::~FrozenPlan() {
  if (const std::shared_ptr<Constants> constants = constants_.lock()) Newest::Get().Remove(constants);
}

void FrozenPlan::Thaw() {
  patience_.StartOver();
  if (!has_constants_) return;
  patience_.Disappoint();
  Release();
}

void FrozenPlan::Release() {
  if (!std::exchange(has_constants_, false)) return;
  WaitForEagerDevice();  // another stream may still read them
  if (const std::shared_ptr<Constants> constants = std::exchange(constants_, {}).lock())
    Newest::Get().Remove(constants);
}

// A form takes some 20 ms, as its first use would: one in each run, unless somebody waits for kernels anyway.
bool FrozenPlan::AreTimed(const Trace& trace) {
  if (!forms_) forms_ = FindFusedForms(calls_, trace, slots_);
  while (!forms_->empty()) {
    const FusedForm fused = std::move(forms_->back());
    forms_->pop_back();
    if (IsKnown(fused)) continue;
    IsFusedFaster(fused);
    if (CompilationFor(calls_.IsDeterministic()) != base::CompileMode::kSync) break;
  }
  return forms_->empty();
}

void FrozenPlan::FreezeAndPlan(const Trace& trace) {
  const double start = SecondsNow();
  frozen_ = Freeze(calls_, trace, slots_);
  if (frozen_ != nullptr) {
    bool known = false;
    numbers_ = ScalarsOf(frozen_->constants, trace);
    planned_constants_ = PlanOf(&frozen_->constants, calls_.IsDeterministic(), &known);
    planned_rest_ = PlanOf(&frozen_->rest, calls_.IsDeterministic(), &known);
  }
  freezing_seconds_ = SecondsNow() - start;
  if (frozen_ == nullptr) account_.Spend(freezing_seconds_);
}

bool FrozenPlan::IsCompiled(const Trace& trace) {
  if (!tried_) {
    if (!AreTimed(trace)) return false;
    tried_ = true;
    FreezeAndPlan(trace);
  }
  if (frozen_ == nullptr) return false;
  const bool constants = planned_constants_->Want(frozen_->constants.symbols, 1);
  if (planned_rest_->Want(frozen_->rest.symbols, 1) && constants) return true;
  const bool constants_failed = NoteFailures(planned_constants_->Failures(), frozen_->constants, calls_.calls(), trace);
  if (NoteFailures(planned_rest_->Failures(), frozen_->rest, calls_.calls(), trace) || constants_failed)
    frozen_ = nullptr;
  return false;
}

// The constants are the outputs of a run, on a trace that has slots for them behind its own.
ConstantContents FrozenPlan::MakeConstants(const Trace& trace) {
  LoweredTrace& constants = frozen_->constants;
  Trace scratch;
  scratch.numbers = trace.numbers;
  scratch.slots.resize(trace.slots.size() + planned_constants_->graph().outputs.size());
  for (const int32_t slot : constants.param_slots) scratch.slots[slot].content = trace.slots[slot].content;
  constants.output_slots.clear();
  for (size_t slot = trace.slots.size(); slot < scratch.slots.size(); ++slot) {
    constants.output_slots.push_back(static_cast<int32_t>(slot));
  }
  TORCH_CHECK(ReadyPlan(calls_, constants, *planned_constants_).Run(&scratch),
              "what follows from them could not be computed");
  ConstantContents contents;
  for (const int32_t slot : constants.output_slots) contents.push_back(std::move(scratch.slots[slot].content));
  return contents;
}

std::vector<PackedConvolution> FrozenPlan::Pack(const ConstantContents& contents) const {
  std::vector<PackedConvolution> convolutions = frozen_->convolutions;
  auto made = contents.begin();
  for (size_t k = 0; k < convolutions.size(); ++k) {
    PackedConvolution& convolution = convolutions[k];
    const PackedConvolution& same = convolutions[convolution.same_as];
    if (&same == &convolution) {
      const c10::Storage weight = *made++;
      lazy::Pack(weight, convolution.form.has_bias ? *made++ : c10::Storage(), &convolution);
    } else {
      convolution.packed_weight = same.packed_weight;
      convolution.bias = same.bias;
    }
  }
  return convolutions;
}

std::shared_ptr<FrozenPlan::Constants> FrozenPlan::FindConstants(const Trace& trace) {
  ConstantsKey key{
      planned_constants_, ir::ExtentsOf(planned_constants_->graph(), frozen_->constants.symbols), {}, numbers_};
  for (const int32_t slot : frozen_->constants.param_slots) key.stamps.push_back(trace.slots[slot].stamp);
  std::vector<PackedConvolution> convolutions;
  std::shared_ptr<const ConstantContents> contents = FindOrMakeConstants(std::move(key), [&] {
    ConstantContents made = MakeConstants(trace);
    convolutions = Pack(made);
    TORCH_CHECK(!PacksForCudnn() || KeepDigits(convolutions), "weights would be too large or too small for f16");
    for (size_t k = 0; k < convolutions.size(); ++k)
      base::Count(base::Counter::kWeightsPacked, convolutions[k].same_as == k);
    WaitForEagerDevice();  // another stream may be the next to read them
    return made;
  });
  if (convolutions.empty()) convolutions = Pack(*contents);  // somebody else has made them
  LAZY_LOG(1, "parameters have stayed for ", patience_.runs(), " runs: ", convolutions.size(),
           " convolutions are packed");
  if (!PacksForCudnn()) contents = nullptr;  // oneDNN's order of a weight is another for each size of images
  return std::make_shared<Constants>(calls_, frozen_->rest, std::move(convolutions), planned_rest_,
                                     std::move(contents));
}

std::shared_ptr<FrozenPlan::Constants> FrozenPlan::TryFindConstants(const Trace& trace) {
  const auto tell = absl::MakeCleanup([&, start = SecondsNow()] {
    account_.Spend(SecondsNow() - start + std::exchange(freezing_seconds_, 0) +
                   planned_constants_->TakePlanningSeconds() + planned_rest_->TakePlanningSeconds());
  });
  try {
    return FindConstants(trace);
  } catch (const std::exception& error) {  // or there is no memory
    LAZY_LOG(1, "parameters are not frozen: ", error.what());
  }
  patience_.Disappoint();
  return nullptr;
}

std::shared_ptr<Runnable> FrozenPlan::Prepare(const std::shared_ptr<Runnable>& next, const Trace& trace,
                                              bool /*once*/) {
  if (!IsCompiled(trace)) return nullptr;
  std::shared_ptr<Constants> constants = constants_.lock();
  const bool same_numbers = numbers_ == ScalarsOf(frozen_->constants, trace);
  if (!same_numbers) tried_ = false;
  if (!same_numbers || (has_constants_ && constants == nullptr)) {
    Thaw();
    return nullptr;
  }
  if (constants == nullptr) constants_ = constants = TryFindConstants(trace);
  if (constants == nullptr) return nullptr;
  has_constants_ = true;
  account_.Save(0);
  Newest::Get().Put(constants);
  next->Release();
  return {constants, &constants->plan};
}

}  // namespace torch_lazy::lazy
