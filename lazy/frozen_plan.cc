// SPDX-License-Identifier: Apache-2.0
#include "lazy/frozen_plan.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"
#include "backends/registry.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/metrics.h"

namespace torch_lazy::lazy {

namespace {

using Contents = std::vector<c10::Storage>;

// What such a graph makes of parameters and numbers.
struct Made {
  std::shared_ptr<PlannedGraph> by;
  std::vector<int64_t> sizes;    // of all dims of the parameters
  std::vector<uint64_t> stamps;  // of these
  std::vector<double> numbers;
  std::weak_ptr<const Contents> contents;

  bool operator==(const Made& other) const {
    return by == other.by && sizes == other.sizes && stamps == other.stamps && numbers == other.numbers;
  }
};

// What is there by `make` already, if somebody has it, else what it makes.
std::shared_ptr<const Contents> FindOrMake(Made made, absl::FunctionRef<Contents()> make) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const all = new std::vector<Made>;
  const std::lock_guard<std::mutex> lock(*mutex);
  std::erase_if(*all, [](const Made& other) { return other.contents.expired(); });
  for (const Made& other : *all) {
    std::shared_ptr<const Contents> contents = other.contents.lock();
    if (contents != nullptr && other == made) return contents;
  }
  auto contents = std::make_shared<const Contents>(make());
  made.contents = contents;
  all->push_back(std::move(made));
  return contents;
}

}  // namespace

struct FrozenPlan::Constants {
  Constants(const Entry& entry, LoweredTrace trace, std::shared_ptr<PlannedGraph> graph, std::shared_ptr<const Contents> shared)
      : contents(std::move(shared)), rest(std::move(trace)), planned(std::move(graph)), plan(entry, rest, *planned) {}
  const std::shared_ptr<const Contents> contents;  // null where they were packed anew
  const LoweredTrace rest;  // its convolutions know their weights
  const std::shared_ptr<PlannedGraph> planned;
  const BoundPlan plan;
};

// Owns the constants in use, those used last in front. Runs may use them a little longer.
class FrozenPlan::Newest {
 public:
  static Newest& Get() {
    static Newest* const newest = new Newest;
    return *newest;
  }

  // They are in use.
  void Put(const std::shared_ptr<const Constants>& constants) {
    std::shared_ptr<const Constants> oldest;  // ends outside the lock
    std::lock_guard<std::mutex> lock(lock_);
    list_.remove(constants);
    list_.push_front(constants);
    if (list_.size() <= kMost) return;
    oldest = std::move(list_.back());
    list_.pop_back();
  }

  void Remove(const std::shared_ptr<const Constants>& constants) {
    std::lock_guard<std::mutex> lock(lock_);
    list_.remove(constants);
  }

 private:
  static constexpr size_t kMost = 8;
  std::mutex lock_;
  std::list<std::shared_ptr<const Constants>> list_;
};

std::unique_ptr<FrozenPlan> FrozenPlan::For(const Entry& entry, const Trace& trace) {
  if (base::IsDisabled("freeze") || !backends::Get().computes() || !CanPackConvolutions()) return nullptr;
  ConstantSlots slots = FindConstantSlots(entry, trace);
  return slots.params.empty() ? nullptr : std::unique_ptr<FrozenPlan>(new FrozenPlan(entry, std::move(slots)));
}

bool FrozenPlan::HaveStayed(const Trace& trace) {
  std::vector<uint64_t> stamps;
  for (const int32_t s : slots_.params) stamps.push_back(trace.slots[s].inherits ? 0 : trace.slots[s].stamp);
  const bool known = std::find(stamps.begin(), stamps.end(), uint64_t{0}) == stamps.end();
  if (known && stamps == stamps_) return ++equal_runs_ >= patience_;
  stamps_ = std::move(stamps);
  Thaw();
  return false;
}

void FrozenPlan::Thaw() {
  constexpr int kMostPatience = 1 << 16;
  equal_runs_ = 0;
  if (!has_constants_) return;
  has_constants_ = false;
  patience_ = std::min(2 * patience_, kMostPatience);
  if (const std::shared_ptr<const Constants> constants = std::exchange(constants_, {}).lock()) Newest::Get().Remove(constants);
}

bool FrozenPlan::IsCompiled(const Trace& trace) {
  if (!tried_) {
    tried_ = true;
    frozen_ = Freeze(entry_, trace, slots_);
    if (frozen_ == nullptr) return false;
    bool known = false;
    numbers_ = NumbersOf(frozen_->constants, trace);
    planned_constants_ = PlanOf(std::exchange(frozen_->constants.graph, {}), &frozen_->constants.symbols, &known);
    planned_rest_ = PlanOf(std::exchange(frozen_->rest.graph, {}), &frozen_->rest.symbols, &known);
  }
  if (frozen_ == nullptr) return false;
  const bool constants = planned_constants_->Want(frozen_->constants.symbols, 1);
  return planned_rest_->Want(frozen_->rest.symbols, 1) && constants;
}

// The constants are the outputs of a run, on a trace that has slots for them behind its own.
std::vector<c10::Storage> FrozenPlan::MakeConstants(const Trace& trace) {
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
  std::vector<c10::Storage> contents;
  for (const int32_t slot : constants.output_slots) contents.push_back(std::move(scratch.slots[slot].content));
  const std::vector<PackedConvolution>& convolutions = frozen_->rest.convolutions;
  for (size_t k = 0; k < convolutions.size(); ++k) base::Count(base::Counter::kWeightsPacked, convolutions[k].same_as == k);
  return contents;
}

std::shared_ptr<const FrozenPlan::Constants> FrozenPlan::FindConstants(const Trace& trace) {
  std::vector<uint64_t> stamps;
  for (const int32_t slot : frozen_->constants.param_slots) stamps.push_back(trace.slots[slot].stamp);
  std::vector<int64_t> sizes;
  for (const ir::Node& node : planned_constants_->graph().nodes) {
    if (node.op != ir::Op::kParam) continue;
    for (const ir::Extent extent : node.type.dims) sizes.push_back(extent.Value(frozen_->constants.symbols));
  }
  std::shared_ptr<const Contents> contents = FindOrMake({planned_constants_, std::move(sizes), std::move(stamps), numbers_, {}},
                                                        [&] { return MakeConstants(trace); });
  auto made = contents->begin();
  LoweredTrace rest = frozen_->rest;
  for (size_t k = 0; k < rest.convolutions.size(); ++k) {
    PackedConvolution& convolution = rest.convolutions[k];
    const PackedConvolution& same = rest.convolutions[convolution.same_as];
    if (&same == &convolution) {
      const c10::Storage weight = *made++;
      convolution.Pack(weight, convolution.form.has_bias ? *made++ : c10::Storage());
    } else {
      convolution.packed_weight = same.packed_weight;
      convolution.bias = same.bias;
    }
  }
  LAZY_LOG(1, "parameters have stayed for ", equal_runs_, " runs: ", rest.convolutions.size(), " convolutions are packed");
  if (!PacksForCudnn()) contents = nullptr;  // oneDNN's order of a weight is another for each size of images
  return std::make_shared<Constants>(entry_, std::move(rest), planned_rest_, std::move(contents));
}

std::shared_ptr<const BoundPlan> FrozenPlan::PlanFor(const Trace& trace) {
  if (!HaveStayed(trace) || !IsCompiled(trace)) return nullptr;
  std::shared_ptr<const Constants> constants = constants_.lock();
  const bool same_numbers = numbers_ == NumbersOf(frozen_->constants, trace);
  if (!same_numbers) tried_ = false;
  if (!same_numbers || (has_constants_ && constants == nullptr)) {
    Thaw();
    return nullptr;
  }
  if (constants == nullptr) constants_ = constants = FindConstants(trace);
  has_constants_ = true;
  Newest::Get().Put(constants);
  return {constants, &constants->plan};
}

}  // namespace torch_lazy::lazy
