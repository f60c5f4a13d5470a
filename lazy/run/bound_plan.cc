// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/bound_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "backends/registry.h"
#include "base/check.h"
#include "base/metrics.h"
#include "lazy/eager/lanes.h"
#include "lazy/eager/on_host.h"
#include "lazy/eager/result_place.h"
#include "lazy/libraries/convolutions.h"
#include "lazy/libraries/product_threads.h"
#include "lazy/run/interpreter.h"
#include "lazy/trace/unwritten.h"

namespace torch_lazy::lazy {

const PackedConvolution* BoundPlan::ConvolutionOf(const ir::Node& call) const {
  if (!IsPacked(call)) return nullptr;
  const auto found = std::find_if(packed_.begin(), packed_.end(), [&](const PackedConvolution& convolution) {
    return convolution.call == call.attrs.index;
  });
  LAZY_CHECK(found != packed_.end(), "call ", call.attrs.index, " is no packed convolution");
  return &*found;
}

BoundPlan::BoundPlan(const CallSequence& calls, const LoweredTrace& lowered, const PlannedGraph& planned,
                     std::vector<PackedConvolution> convolutions)
    : calls_(calls),
      lowered_(lowered),
      plan_(planned.plan()),
      graph_(planned.graph()),
      packed_(std::move(convolutions)) {
  const std::vector<int64_t> symbols = codegen::NumbersOf(plan_.padded_extents, lowered.symbols);
  for (const codegen::BufferSpec& buffer : plan_.buffers) {
    size_bytes_.push_back(static_cast<size_t>(ir::SizeBytes(buffer.type, symbols)));
  }
  bool follows_launch = false;
  for (const codegen::Step& step : plan_.steps) {
    products_.push_back(step.kind == codegen::Step::Kind::kMatmul ? BindProduct(step, symbols) : BoundProduct());
    convolutions_.push_back(step.kind == codegen::Step::Kind::kCall ? ConvolutionOf(graph_.node(step.call)) : nullptr);
    BoundLaunch& launch = launches_.emplace_back();
    for (const codegen::Instance& instance : step.instances) launch.Add(instance, plan_, planned.module(), symbols);
    if (follows_launch) launch.Follow();
    follows_launch = step.kind == codegen::Step::Kind::kLaunch;
  }
  uses_ = FindParamUses(calls, plan_, graph_, lowered.param_slots.size(), symbols);
  shares_launches_ = LaunchesExactRowsAlone(symbols);
  const bool may_run_ahead = planned.dump_folder().empty() && backends::Get().computes();
  is_short_ = may_run_ahead && IsOnHost() && IsShort() && CanLimitProductThreads();
  ahead_by_replay_ = IsAheadByReplay();
  runs_ahead_ = is_short_ || (may_run_ahead && !IsOnHost() && IsWorthAThread());
  if (!is_short_ && backends::Get().computes()) TuneProducts();
  if (!planned.dump_folder().empty()) {
    page_ = std::make_unique<StepPage>(planned.dump_folder(), graph_, plan_, size_bytes_);
  }
}

bool BoundPlan::AwaitsTrials() const {
  return std::ranges::any_of(products_, [](const BoundProduct& product) {
    return product.tuned_cuda != nullptr && product.tuned_cuda->AwaitsTrial();
  });
}

size_t BoundPlan::PeakBytes() const { return lazy::PeakBytes(plan_, size_bytes_); }

void BoundPlan::TuneProducts() {
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    if (plan_.steps[s].kind == codegen::Step::Kind::kMatmul)
      Tune(plan_.steps[s], calls_.IsDeterministic(), &products_[s]);
  }
}

bool BoundPlan::LaunchesExactRowsAlone(absl::Span<const int64_t> symbols) const {
  const auto is_exact = [&](const codegen::Instance& instance) {
    const codegen::Kernel::Exact& exact = plan_.kernels[instance.kernel].exact;
    return exact.extent >= 0 && instance.extents[exact.extent].Value(symbols) == exact.length;
  };
  return !plan_.steps.empty() && std::all_of(plan_.steps.begin(), plan_.steps.end(), [&](const codegen::Step& step) {
    return step.kind == codegen::Step::Kind::kLaunch && step.frees.empty() &&
           std::all_of(step.instances.begin(), step.instances.end(), is_exact);
  });
}

bool BoundPlan::IsShort() const {
  constexpr double kNanosecondsPerCall = 1500;     // to record it, with what autograd and the program do
  constexpr double kFlopsPerNanosecond = 100;      // of one thread
  constexpr double kNanosecondsPerProduct = 1000;  // to call the library
  constexpr double kMostKernels = 4;               // they are shared with whoever waits, products are not
  double products = 0, kernels = 0;
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    if (plan_.steps[s].kind == codegen::Step::Kind::kCall) return false;
    kernels += launches_[s].Cost();
    if (plan_.steps[s].kind != codegen::Step::Kind::kMatmul) continue;
    const BoundProduct& product = products_[s];
    products += kNanosecondsPerProduct +
                2.0 * static_cast<double>(c10::multiply_integers(product.x.sizes) * product.y.sizes.back()) /
                    kFlopsPerNanosecond;
  }
  const double recording = kNanosecondsPerCall * static_cast<double>(calls_.calls().size());
  return products <= recording && kernels <= kMostKernels * recording;
}

bool BoundPlan::HasCall(absl::FunctionRef<bool(const TrieNode&)> is_such) const {
  return std::ranges::any_of(plan_.steps, [&](const codegen::Step& step) {
    return step.kind == codegen::Step::Kind::kCall &&
           is_such(*calls_.calls()[static_cast<size_t>(graph_.node(step.call).attrs.index)]);
  });
}

bool BoundPlan::IsWorthAThread() const {
  constexpr size_t kFewestSteps = 4;  // to wake the thread takes as long as a few launches
  return plan_.steps.size() >= kFewestSteps &&
         !HasCall([](const TrieNode& call) { return call.op->seed_arg < 0 && call.op->random; });
}

bool BoundPlan::IsAheadByReplay() const {
  return HasCall([](const TrieNode& call) {
    const int seed = call.op->seed_arg;
    const bool draws = seed >= 0 && call.PlaceOfNumber(static_cast<size_t>(seed)) >= 0;
    return draws || call.op->Has(kPreparesByThread);
  });
}

void BoundPlan::RunConvolution(size_t step, PlanMemory* memory) const {
  if (!backends::Get().computes()) return;
  const codegen::Step& plan_step = plan_.steps[step];
  const bool adds = plan_step.operands.size() == 2;
  c10::Storage result = lazy::RunConvolution(*convolutions_[step], memory->Content(plan_step.operands[0]),
                                             adds ? memory->Content(plan_step.operands[1]) : c10::Storage());
  if (graph_.node(plan_step.call).attrs.inout[0] < 0) memory->Set(plan_step.results[0], std::move(result));
}

void BoundPlan::RunCall(size_t step, Trace* trace, PlanMemory* memory) const {
  if (!backends::Get().computes()) return;
  const codegen::Step& plan_step = plan_.steps[step];
  const ir::Node& node = graph_.node(plan_step.call);
  const TrieNode& call = *calls_.calls()[static_cast<size_t>(node.attrs.index)];
  const std::vector<int32_t> slots = call.DistinctSlots();  // the interpreter looks operands up by slot
  LAZY_CHECK(slots.size() == plan_step.operands.size(), call.op->name, ": ", plan_step.operands.size(), " buffers for ",
             slots.size(), " slots");
  const auto take_back = absl::MakeCleanup([&] {
    for (const int32_t used : slots) trace->slots[used].content = c10::Storage();
  });
  for (size_t i = 0; i < slots.size(); ++i) {
    trace->slots[slots[i]].content = memory->Content(plan_step.operands[i]);
  }
  size_t r = 0;
  while (r < node.attrs.inout.size() && node.attrs.inout[r] >= 0)
    ++r;  // the first results are operands written in place
  std::optional<ResultPlace> place;
  const bool makes_one = r + 1 == plan_step.results.size() && plan_step.results[r] >= 0;
  if (makes_one && memory->IsFixed(plan_step.results[r]))
    place.emplace(memory->Content(plan_step.results[r]), call.shape->results[0].geometry);
  InterpretCall(call, trace);
  base::Count(base::Counter::kLibraryCalls);
  int32_t slot = call.first_result_slot;
  for (; r < plan_step.results.size(); ++r, ++slot) {
    const int32_t buffer = plan_step.results[r];  // -1: nobody reads this result
    c10::Storage content = std::move(trace->slots[slot].content);
    if (buffer >= 0) memory->Set(buffer, std::move(content));
  }
}

void BoundPlan::RunStep(size_t step, Trace* trace, PlanMemory* memory) const {
  if (step == uses_.failing_end) memory->Keep();
  for (const int32_t buffer : uses_.saves[step]) memory->Save(buffer);
  if (plan_.steps[step].kind == codegen::Step::Kind::kLaunch) {
    launches_[step].Run(memory);
  } else if (plan_.steps[step].kind == codegen::Step::Kind::kMatmul) {
    RunProduct(products_[step], plan_.steps[step], memory);
  } else if (convolutions_[step] != nullptr) {
    RunConvolution(step, memory);
  } else {
    RunCall(step, trace, memory);
  }
  for (const int32_t buffer : plan_.steps[step].frees) memory->Free(buffer);
  for (const int32_t buffer : uses_.last_reads[step]) memory->Free(buffer);
}

size_t BoundPlan::LaunchBytes() const {
  size_t size_bytes = 0;
  for (const BoundLaunch& launch : launches_) size_bytes += launch.ArgumentBytes();
  return size_bytes;
}

std::vector<double> BoundPlan::ScalarsOfLaunches(absl::Span<const double> numbers) const {
  std::vector<double> scalars;
  for (const BoundLaunch& launch : launches_) {
    for (const int32_t scalar : launch.scalars()) scalars.push_back(numbers[scalar]);
  }
  return scalars;
}

bool BoundPlan::Run(Trace* trace) const {
  return Run(trace, [](PlanMemory*) {});
}

bool BoundPlan::Run(Trace* trace, absl::FunctionRef<void(PlanMemory*)> prepare) const {
  const MainWork main;
  const OneProductThread one(is_short_);
  const LeaveUnwritten unwritten;
  PlanMemory memory(plan_, lowered_, size_bytes_, uses_.read, trace);
  memory.numbers = ScalarsOf(lowered_, *trace);
  prepare(&memory);
  size_t step = 0;
  StepClock clock(page_.get());
  try {
    for (; step < plan_.steps.size(); ++step) {
      RunStep(step, trace, &memory);
      clock.Step();
    }
  } catch (...) {
    if (step >= uses_.undoable_end) throw;
    return false;
  }
  clock.Done();
  memory.Keep();
  for (size_t k = 0; k < plan_.outputs.size(); ++k) {
    ContentAt(lowered_, lowered_.output_slots[k], trace) = memory.Content(plan_.outputs[k]);
  }
  return true;
}

}  // namespace torch_lazy::lazy
