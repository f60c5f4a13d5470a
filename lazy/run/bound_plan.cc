// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/bound_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_addmm_activation.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zero.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "absl/cleanup/cleanup.h"
#include "backends/registry.h"
#include "base/check.h"
#include "base/faults.h"
#include "base/metrics.h"
#include "lazy/eager/eager_device.h"
#include "lazy/eager/memory.h"
#include "lazy/host/ledger.h"
#include "lazy/host/raise.h"
#include "lazy/libraries/product_threads.h"
#include "lazy/lower/strided_views.h"
#include "lazy/ops/deterministic.h"
#include "lazy/run/interpreter.h"
#include "lazy/run/plan_memory.h"
#include "lazy/trace/unwritten.h"
#include "lazy/variants/cuda_graph_plan.h"

namespace torch_lazy::lazy {
namespace {

// A number among a call's tensors. Most are plain numbers that PyTorch has wrapped: these are read from their memory,
// since `item` goes through the dispatcher and costs as much as recording a call.
double NumberOf(const at::Tensor& tensor, bool integer) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.is_wrapped_number() && !integer && impl.dtype() == caffe2::TypeMeta::Make<double>()) {
    return *static_cast<const double*>(impl.data());
  }
  const at::Scalar number = tensor.item();
  return integer ? std::bit_cast<double>(number.toLong()) : number.toDouble();
}

// Of what is multiplied.
at::ScalarType ScalarTypeOf(ir::DType dtype) {
  LAZY_CHECK(ir::IsFloat(dtype), "matmul: no products of ", ir::Name(dtype));
  if (dtype == ir::DType::kF16) return at::kHalf;
  if (dtype == ir::DType::kBF16) return at::kBFloat16;
  return dtype == ir::DType::kF64 ? at::kDouble : at::kFloat;
}

// What a dim of one element has no use for, libraries check: rows lie one after the other, or columns do.
void PlaceAlone(Geometry* matrix) {
  const size_t column = matrix->sizes.size() - 1, row = column - 1;
  if (matrix->sizes[column] == 1) matrix->strides[column] = 1;
  if (matrix->sizes[row] == 1)
    matrix->strides[row] = matrix->strides[column] == 1 ? std::max<int64_t>(matrix->sizes[column], 1) : 1;
}

// The library calls that ATen makes for `mm`, `bmm`, `addmm` and `_addmm_activation`; a product of no terms is 0.
// CUDA's `addmm` hands cuBLASLt the bias where it and the result are contiguous, as they are here, and has two or more
// rows, columns and terms; else it copies it into the result first. Of no terms, CUDA's `_addmm_activation` forgets the
// activation.
void Multiply(const ProductTensors& tensors, bool sums) {
  const at::Tensor &x = tensors.x, &y = tensors.y;
  at::Tensor result = tensors.result;
  if (tensors.is_relu && x.numel() > 0) {
    at::_addmm_activation_out(result, tensors.bias, x, y);
  } else if (tensors.bias.defined()) {
    at::addmm_out(result, tensors.bias, x, y);
    if (tensors.is_relu) at::relu_(result);
  } else if (x.dim() == 2) {
    at::mm_out(result, x, y);
  } else if (!sums) {
    at::bmm_out(result, x, y);
  } else if (x.size(0) == 0) {
    at::zero_(result);
  } else {
    at::mm_out(result, x[0], y[0]);
    for (int64_t batch = 1; batch < x.size(0); ++batch) at::addmm_out(result, result, x[batch], y[batch]);
  }
}

}  // namespace

BoundPlan::Matmul BoundPlan::BindMatmul(const codegen::Step& step, absl::Span<const int64_t> symbols) {
  std::vector<int64_t> sizes;
  for (const codegen::Monomial& size : step.sizes) sizes.push_back(codegen::Polynomial(size).Value(symbols));
  const size_t rows = sizes.size() - 3, inner = rows + 1, columns = rows + 2;
  const auto bind = [&](const codegen::BoundMatrix& matrix, size_t first, size_t second) {
    Geometry geometry;
    geometry.dtype = ScalarTypeOf(step.dtype);
    geometry.offset = matrix.offset.Value(symbols);
    if (matrix.strides.size() == 3) geometry.sizes.push_back(sizes[0]);
    geometry.sizes.push_back(sizes[first]);
    geometry.sizes.push_back(sizes[second]);
    for (const codegen::Polynomial& stride : matrix.strides) geometry.strides.push_back(stride.Value(symbols));
    PlaceAlone(&geometry);
    return geometry;
  };
  Matmul matmul{bind(step.x, rows, inner), bind(step.y, inner, columns), bind(step.result, rows, columns), {}};
  if (step.bias.buffer >= 0) {
    matmul.bias.dtype = matmul.result.dtype;
    matmul.bias.sizes = {sizes[columns]};
    matmul.bias.strides = {1};
    matmul.bias.offset = step.bias.offset.Value(symbols);
  }
  return matmul;
}

BoundPlan::~BoundPlan() = default;

const PackedConvolution* BoundPlan::ConvolutionOf(const ir::Node& call) const {
  if (!IsPacked(call)) return nullptr;
  const auto found =
      std::find_if(lowered_.convolutions.begin(), lowered_.convolutions.end(),
                   [&](const PackedConvolution& convolution) { return convolution.call == call.attrs.index; });
  LAZY_CHECK(found != lowered_.convolutions.end(), "call ", call.attrs.index, " is no packed convolution");
  return &*found;
}

BoundPlan::BoundPlan(const Entry& entry, const LoweredTrace& lowered, const PlannedGraph& planned)
    : entry_(entry), lowered_(lowered), plan_(planned.plan()), graph_(planned.graph()) {
  const std::vector<int64_t> symbols = codegen::NumbersOf(plan_.padded_extents, lowered.symbols);
  for (const codegen::BufferSpec& buffer : plan_.buffers) {
    size_bytes_.push_back(static_cast<size_t>(ir::SizeBytes(buffer.type, symbols)));
  }
  for (const codegen::Step& step : plan_.steps) {
    matmuls_.push_back(step.kind == codegen::Step::Kind::kMatmul ? BindMatmul(step, symbols) : Matmul());
    convolutions_.push_back(step.kind == codegen::Step::Kind::kCall ? ConvolutionOf(graph_.node(step.call)) : nullptr);
    Launch& launch = launches_.emplace_back();
    for (const codegen::Instance& instance : step.instances) {
      const int64_t iterations = ir::NumElements(instance.range, symbols);
      if (iterations == 0) continue;
      launch.buffers.insert(launch.buffers.end(), instance.buffers.begin(), instance.buffers.end());
      for (size_t k = 0; k < instance.buffers.size(); ++k) {
        const ir::DType dtype = plan_.buffers[static_cast<size_t>(instance.buffers[k])].type.dtype;
        launch.offset_bytes.push_back(instance.offsets[k].Value(symbols) * ir::SizeBytes(dtype));
      }
      launch.scalars.insert(launch.scalars.end(), instance.scalars.begin(), instance.scalars.end());
      for (const ir::Extent extent : instance.extents) launch.extents.push_back(extent.Value(symbols));
      backends::BoundInstance& bound = launch.instances.emplace_back();
      bound.function = planned.module().Function(instance.kernel);
      bound.buffers = absl::MakeConstSpan(static_cast<void* const*>(nullptr), instance.buffers.size());
      bound.scalars = absl::MakeConstSpan(static_cast<const double*>(nullptr), instance.scalars.size());
      bound.extents = absl::MakeConstSpan(static_cast<const int64_t*>(nullptr), instance.extents.size());
      bound.iterations = iterations;
      bound.grain = instance.grain;
      bound.cost_per_iteration = instance.cost_per_iteration;
      bound.scratch_bytes = codegen::ScratchBytes(instance, symbols);
    }
  }
  FindReadParams(symbols);
  FindSaves();
  FindLastReads();
  shares_launches_ = LaunchesExactRowsAlone(symbols);
  runs_ahead_ = IsOnHost() && IsShort() && CanLimitProductThreads() && planned.dump_folder().empty() &&
                backends::Get().computes();
  if (!runs_ahead_ && backends::Get().computes()) TuneProducts();
  if (!planned.dump_folder().empty()) {
    page_ = std::make_unique<StepPage>(planned.dump_folder(), graph_, plan_, size_bytes_);
  }
  graphed_ = GraphedPlan::For(*this);
}

size_t BoundPlan::PeakBytes() const { return lazy::PeakBytes(plan_, size_bytes_); }

void BoundPlan::DropGraph() const {
  if (graphed_ != nullptr) graphed_->LetGo();
}

// The storage may be dead, and its memory wanted. While a call may still fail, all is kept for the interpreter.
void BoundPlan::FindLastReads() {
  std::vector<size_t> last_read(plan_.buffers.size(), SIZE_MAX);  // SIZE_MAX: none, or it is written
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const auto read = [&](int32_t buffer) { last_read[buffer] = std::max(s, failing_end_); };
    const codegen::Step& step = plan_.steps[s];
    std::for_each(step.operands.begin(), step.operands.end(), read);
    for (const codegen::Instance& instance : step.instances)
      std::for_each(instance.buffers.begin(), instance.buffers.end(), read);
  }
  const auto write = [&](int32_t buffer) {
    if (buffer >= 0) last_read[buffer] = SIZE_MAX;
  };
  std::for_each(plan_.outputs.begin(), plan_.outputs.end(), write);
  for (const codegen::Step& step : plan_.steps) {
    std::for_each(step.results.begin(), step.results.end(), write);
    for (const codegen::Instance& instance : step.instances)
      std::for_each(instance.written.begin(), instance.written.end(), write);
  }
  last_reads_.resize(plan_.steps.size());
  for (size_t b = 0; b < last_read.size(); ++b) {
    if (plan_.buffers[b].kind != codegen::BufferSpec::Kind::kParam || last_read[b] >= plan_.steps.size()) continue;
    last_reads_[last_read[b]].push_back(static_cast<int32_t>(b));
    undoable_end_ = std::min(undoable_end_, last_read[b] + 1);
  }
}

void BoundPlan::TuneProducts() {
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const codegen::Step& step = plan_.steps[s];
    if (step.kind != codegen::Step::Kind::kMatmul || step.sums) continue;
    Matmul& matmul = matmuls_[s];
    if (!IsOnHost()) {
      matmul.tuned_cuda = TunedCudaProduct::For(matmul.x, matmul.y, matmul.bias, matmul.result, step.is_relu);
    } else if (step.bias.buffer < 0) {
      matmul.tuned = TunedProduct::For(matmul.x, matmul.y, matmul.result, IsDeterministic(entry_));
    }
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
    for (const backends::BoundInstance& instance : launches_[s].instances) {
      kernels += static_cast<double>(instance.iterations) * instance.cost_per_iteration;
    }
    if (plan_.steps[s].kind != codegen::Step::Kind::kMatmul) continue;
    const Matmul& matmul = matmuls_[s];
    products +=
        kNanosecondsPerProduct +
        2.0 * static_cast<double>(c10::multiply_integers(matmul.x.sizes) * matmul.y.sizes.back()) / kFlopsPerNanosecond;
  }
  const double recording = kNanosecondsPerCall * static_cast<double>(entry_.calls().size());
  return products <= recording && kernels <= kMostKernels * recording;
}

// Which inputs of a call its `out=` arguments overwrite unread, all of their storage.
std::vector<bool> BoundPlan::OverwrittenInputs(const ir::Node& node, absl::Span<const int64_t> symbols) const {
  std::vector<bool> is_overwritten(node.inputs.size(), node.op == ir::Op::kCall);
  if (node.op != ir::Op::kCall) return is_overwritten;
  const TrieNode& call = *entry_.calls()[static_cast<size_t>(node.attrs.index)];
  if (node.attrs.callee != call.op->name) return std::vector<bool>(node.inputs.size(), false);  // it stands for several
  const std::vector<int32_t> slots = call.DistinctSlots();
  for (const NodeOperand& operand : call.operands) {
    const size_t at = static_cast<size_t>(std::find(slots.begin(), slots.end(), operand.slot) - slots.begin());
    const size_t size_bytes = static_cast<size_t>(ir::SizeBytes(graph_.type(node.inputs[at]), symbols));
    if (!call.op->args[static_cast<size_t>(operand.arg)].is_out || !MemoryOrder(operand.geometry, size_bytes))
      is_overwritten[at] = false;
  }
  return is_overwritten;
}

// By what the outputs, and calls that may fail, need: views of a tensor that is overwritten are there, too, and nobody
// takes them.
void BoundPlan::FindReadParams(absl::Span<const int64_t> symbols) {
  std::vector<bool> is_needed(graph_.nodes.size(), false), is_read(graph_.nodes.size(), false);
  for (const ir::Output& output : graph_.outputs) is_needed[output.value] = is_read[output.value] = true;
  for (size_t v = graph_.nodes.size(); v-- > 0;) {
    const ir::Node& node = graph_.nodes[v];
    if (node.op == ir::Op::kCall && (node.attrs.may_fail || node.attrs.inout.empty())) is_needed[v] = true;
    if (!is_needed[v]) continue;
    const std::vector<bool> is_overwritten = OverwrittenInputs(node, symbols);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      is_needed[node.inputs[k]] = true;
      if (!is_overwritten[k]) is_read[node.inputs[k]] = true;
    }
  }
  std::vector<bool> is_param_read(lowered_.param_slots.size(), false);
  for (size_t v = 0; v < graph_.nodes.size(); ++v) {
    const ir::Node& node = graph_.nodes[v];
    if (node.op == ir::Op::kParam && is_read[v]) is_param_read[static_cast<size_t>(node.attrs.index)] = true;
  }
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    const codegen::BufferSpec& buffer = plan_.buffers[b];
    if (buffer.kind == codegen::BufferSpec::Kind::kParam && is_param_read[static_cast<size_t>(buffer.index)]) {
      read_params_.push_back(static_cast<int32_t>(b));
    }
  }
}

void BoundPlan::FindSaves() {
  saves_.resize(plan_.steps.size());
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const codegen::Step& step = plan_.steps[s];
    if (step.kind == codegen::Step::Kind::kCall && graph_.node(step.call).attrs.may_fail) failing_end_ = s + 1;
  }
  undoable_end_ = plan_.steps.size();
  std::vector<bool> is_saved(plan_.buffers.size(), false);
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const auto write = [&](int32_t buffer) {
      if (buffer < 0 || plan_.buffers[buffer].kind != codegen::BufferSpec::Kind::kParam) return;
      if (s >= failing_end_) undoable_end_ = std::min(undoable_end_, s);
      if (s < failing_end_ && !is_saved[buffer]) saves_[s].push_back(buffer);
      is_saved[buffer] = true;
    };
    const codegen::Step& step = plan_.steps[s];
    std::for_each(step.results.begin(), step.results.end(), write);
    for (const codegen::Instance& instance : step.instances) {
      std::for_each(instance.written.begin(), instance.written.end(), write);
    }
  }
}

std::vector<double> NumbersOf(const LoweredTrace& lowered, const Trace& trace) {
  std::vector<double> numbers;
  numbers.reserve(lowered.numbers.size());
  for (const NumberSource& source : lowered.numbers) {
    const c10::IValue* value = &trace.numbers[source.place];
    if (source.item >= 0) value = &value->toListRef()[source.item];
    if (value->isTensor()) {
      numbers.push_back(NumberOf(value->toTensor(), source.integer));
    } else if (source.integer) {
      numbers.push_back(
          std::bit_cast<double>(value->isBool() ? static_cast<int64_t>(value->toBool()) : value->toInt()));
    } else {
      numbers.push_back(value->toDouble());
    }
  }
  return numbers;
}

void BoundPlan::RunLaunch(const Launch& launch, PlanMemory* memory) const {
  if (launch.instances.empty()) return;
  std::vector<void*> pointers(launch.buffers.size());
  for (size_t i = 0; i < pointers.size(); ++i) {
    pointers[i] = static_cast<char*>(memory->Address(launch.buffers[i])) + launch.offset_bytes[i];
  }
  std::vector<double> scalars(launch.scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) scalars[i] = memory->numbers[launch.scalars[i]];
  std::vector<backends::BoundInstance> instances = launch.instances;
  void* const* pointer = pointers.data();
  const double* scalar = scalars.data();
  const int64_t* extent = launch.extents.data();
  for (backends::BoundInstance& instance : instances) {
    instance.buffers = {pointer, instance.buffers.size()};
    instance.scalars = {scalar, instance.scalars.size()};
    instance.extents = {extent, instance.extents.size()};
    pointer += instance.buffers.size();
    scalar += instance.scalars.size();
    extent += instance.extents.size();
  }
  RaiseIfError(base::MustFail()
                   ? backends::DeviceError(absl::StatusCode::kInternal, /*number=*/999, "a launch that was to fail")
                   : backends::Get().Launch(instances));
}

void BoundPlan::RunMatmul(size_t step, PlanMemory* memory) const {
  if (!backends::Get().computes()) return;
  const codegen::Step& plan_step = plan_.steps[step];
  const Matmul& matmul = matmuls_[step];
  ProductTensors tensors;
  tensors.result = Alias(memory->Content(plan_step.result.buffer), matmul.result);
  if (tensors.result.numel() == 0) return;
  tensors.x = Alias(memory->Content(plan_step.x.buffer), matmul.x);
  tensors.y = Alias(memory->Content(plan_step.y.buffer), matmul.y);
  if (plan_step.bias.buffer >= 0) tensors.bias = Alias(memory->Content(plan_step.bias.buffer), matmul.bias);
  tensors.is_relu = plan_step.is_relu;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  base::Count(base::Counter::kLibraryCalls);
  if (matmul.tuned != nullptr) {
    matmul.tuned->Run(tensors.x, tensors.y, &tensors.result);
  } else if (matmul.tuned_cuda != nullptr) {
    matmul.tuned_cuda->Run(tensors, [&] { Multiply(tensors, plan_step.sums); });
  } else {
    Multiply(tensors, plan_step.sums);
  }
}

void BoundPlan::RunConvolution(size_t step, PlanMemory* memory) const {
  if (!backends::Get().computes()) return;
  const codegen::Step& plan_step = plan_.steps[step];
  const bool adds = plan_step.operands.size() == 2;
  c10::Storage result = convolutions_[step]->Run(memory->Content(plan_step.operands[0]),
                                                 adds ? memory->Content(plan_step.operands[1]) : c10::Storage());
  if (graph_.node(plan_step.call).attrs.inout[0] < 0) memory->Set(plan_step.results[0], std::move(result));
}

void BoundPlan::RunCall(size_t step, Trace* trace, PlanMemory* memory) const {
  if (!backends::Get().computes()) return;
  const codegen::Step& plan_step = plan_.steps[step];
  const ir::Node& node = graph_.node(plan_step.call);
  const TrieNode& call = *entry_.calls()[static_cast<size_t>(node.attrs.index)];
  const std::vector<int32_t> slots = call.DistinctSlots();  // the interpreter looks operands up by slot
  LAZY_CHECK(slots.size() == plan_step.operands.size(), call.op->name, ": ", plan_step.operands.size(), " buffers for ",
             slots.size(), " slots");
  const auto take_back = absl::MakeCleanup([&] {
    for (const int32_t used : slots) trace->slots[used].content = c10::Storage();
  });
  for (size_t i = 0; i < slots.size(); ++i) {
    trace->slots[slots[i]].content = memory->Content(plan_step.operands[i]);
  }
  InterpretCall(call, trace);
  base::Count(base::Counter::kLibraryCalls);
  size_t r = 0;
  while (r < node.attrs.inout.size() && node.attrs.inout[r] >= 0)
    ++r;  // the first results are operands written in place
  int32_t slot = call.first_result_slot;
  for (; r < plan_step.results.size(); ++r, ++slot) {
    const int32_t buffer = plan_step.results[r];  // -1: nobody reads this result
    c10::Storage content = std::move(trace->slots[slot].content);
    if (buffer >= 0) memory->Set(buffer, std::move(content));
  }
}

void BoundPlan::RunStep(size_t step, Trace* trace, PlanMemory* memory) const {
  if (step == failing_end_) memory->Keep();
  for (const int32_t buffer : saves_[step]) memory->Save(buffer);
  if (plan_.steps[step].kind == codegen::Step::Kind::kLaunch) {
    RunLaunch(launches_[step], memory);
  } else if (plan_.steps[step].kind == codegen::Step::Kind::kMatmul) {
    RunMatmul(step, memory);
  } else if (convolutions_[step] != nullptr) {
    RunConvolution(step, memory);
  } else {
    RunCall(step, trace, memory);
  }
  for (const int32_t buffer : plan_.steps[step].frees) memory->Free(buffer);
  for (const int32_t buffer : last_reads_[step]) memory->Free(buffer);
}

size_t BoundPlan::LaunchBytes() const {
  size_t size_bytes = 0;
  for (const Launch& launch : launches_) {
    if (!launch.instances.empty()) size_bytes += backends::Get().LaunchBytes(launch.instances);
  }
  return size_bytes;
}

std::vector<double> BoundPlan::ScalarsOfLaunches(absl::Span<const double> numbers) const {
  std::vector<double> scalars;
  for (const Launch& launch : launches_) {
    for (const int32_t scalar : launch.scalars) scalars.push_back(numbers[scalar]);
  }
  return scalars;
}

bool BoundPlan::Run(Trace* trace) const {
  const double start = graphed_ != nullptr ? SecondsNow() : 0;
  if (graphed_ != nullptr && graphed_->Run(trace)) return true;
  const OneProductThread one(runs_ahead_);
  const LeaveUnwritten unwritten;
  PlanMemory memory(plan_, lowered_, size_bytes_, read_params_, trace);
  memory.numbers = NumbersOf(lowered_, *trace);
  size_t step = 0;
  StepClock clock(page_.get());
  try {
    for (; step < plan_.steps.size(); ++step) {
      RunStep(step, trace, &memory);
      clock.Step();
    }
  } catch (...) {
    if (step >= undoable_end_) throw;
    return false;
  }
  clock.Done();
  memory.Keep();
  for (size_t k = 0; k < plan_.outputs.size(); ++k) {
    ContentAt(lowered_, lowered_.output_slots[k], trace) = memory.Content(plan_.outputs[k]);
  }
  if (graphed_ != nullptr) graphed_->AddLaunched(SecondsNow() - start);
  return true;
}

}  // namespace torch_lazy::lazy
