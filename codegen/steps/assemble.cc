// SPDX-License-Identifier: Apache-2.0
#include "codegen/steps/assemble.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/pace.h"
#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "codegen/kernels/cost.h"
#include "codegen/layout/attention.h"
#include "codegen/layout/matrix.h"
#include "codegen/plan/seen_sizes.h"
#include "codegen/steps/schedule.h"
#include "ir/print.h"

namespace torch_lazy::codegen {
namespace {

class Assembler {
 public:
  Assembler(const ir::Graph& original, const ir::Graph& graph, const Factors& factors, const Partition& partition,
            const Tasks& tasks, const StoragePlan& storage)
      : graph_(graph), factors_(factors), partition_(partition), tasks_(tasks), storage_(storage) {
    for (ir::Value v = 0; v < static_cast<ir::Value>(original.nodes.size()); ++v) {
      if (original.node(v).op == ir::Op::kCall) calls_[original.node(v).attrs.index] = v;
    }
  }

  Plan Make(const std::vector<Body>& bodies, const CompileOptions& options) {
    plan_.buffers = storage_.buffers;
    std::vector<TaskCost> costs(tasks_.tasks.size());
    for (size_t g = 0; g < bodies.size(); ++g) {
      base::GiveWay();
      const KernelCost cost = CostOf(graph_, bodies[g], options);
      costs[g] = {cost.nanoseconds_per_iteration * cost.iterations, BytesFreed(tasks_.tasks[g], options)};
      const Group::Shape shape = partition_.groups[g].shape;
      AddInstance(options.target == Target::kCuda ? cuda::EmitKernel(graph_, shape, bodies[g], options)
                                                  : EmitKernel(graph_, shape, bodies[g], options.seen_extents),
                  cost.nanoseconds_per_iteration);
      NoteOrigins(partition_.groups[g], &plan_.origins[instances_.back().kernel]);
      if (!options.dump_folder.empty()) instances_.back().nodes = NodesOf(partition_.groups[g]);
    }
    AddAttentions(options);
    const std::vector<double> bytes = BytesOfTemporaries(options);
    for (const std::vector<int>& step : MakeSchedule(tasks_, costs, bytes, options.target)) AddStep(step);
    AddFrees();
    if (options.target == Target::kCuda) AddEntries(options);
    for (const ir::Output& output : graph_.outputs) {
      plan_.outputs.push_back(storage_.buffer_of[partition_.StoredAs(graph_, output.value)]);
    }
    return std::move(plan_);
  }

 private:
  void AddInstance(WrittenKernel written, double cost) {
    const auto [known, is_new] = kernels_.try_emplace(written.kernel.name, static_cast<int32_t>(plan_.kernels.size()));
    if (is_new) {
      plan_.kernels.push_back(std::move(written.kernel));
      plan_.origins.emplace_back();
      entries_.push_back(std::move(written.entries));
    }
    Instance instance = std::move(written.instance);
    instance.kernel = known->second;
    instance.cost_per_iteration = cost;
    for (const Slot& slot : written.slots) {
      LAZY_CHECK(storage_.buffer_of[slot.value] >= 0, "no buffer for ", ir::PrintNode(graph_, slot.value));
      instance.buffers.push_back(storage_.buffer_of[slot.value]);
      instance.offsets.push_back(slot.offset);
      if (slot.written) instance.written.push_back(instance.buffers.back());
    }
    instances_.push_back(std::move(instance));
  }

  // Their instances stand behind those of groups.
  void AddAttentions(const CompileOptions& options) {
    for (const Task& task : tasks_.tasks) {
      if (task.call == ir::kNoValue || ir::Info(graph_.node(task.call).op).kind != ir::Kind::kAttend) continue;
      Body body = cuda::BodyOf(AttentionOf(graph_, partition_.concats, factors_, task.call), task.call);
      for (Slot& slot : body.slots) slot.value = partition_.StoredAs(graph_, slot.value);
      attentions_[task.call] = instances_.size();
      AddInstance(cuda::EmitAttention(graph_, body, options), /*cost=*/1);
      if (const int32_t origin = graph_.node(task.call).origin; origin >= 0)
        plan_.origins[instances_.back().kernel].push_back(origin);
      if (!options.dump_folder.empty()) instances_.back().nodes = ir::PrintNodes(graph_, {task.call});
    }
  }

  void NoteOrigins(const Group& group, std::vector<int32_t>* origins) const {
    const auto note = [&](ir::Value v) {
      if (graph_.node(v).origin >= 0) origins->push_back(graph_.node(v).origin);
    };
    std::for_each(group.computed.begin(), group.computed.end(), note);
    for (const Group::Root& root : group.roots) note(root.value);
    std::sort(origins->begin(), origins->end());
    origins->erase(std::unique(origins->begin(), origins->end()), origins->end());
  }

  // Those that launches take for the sizes seen first.
  void AddEntries(const CompileOptions& options) {
    std::vector<Kernel::Entries> wanted(plan_.kernels.size(), {false, false, false});
    for (const Step& step : plan_.steps) {
      absl::flat_hash_map<int32_t, std::vector<int64_t>> blocks;
      for (const Instance& instance : step.instances) {
        const double iterations = SeenSize(ProductOf(instance.range), options.seen_extents);
        const auto of_block = static_cast<double>(plan_.kernels[instance.kernel].iterations_per_block);
        blocks[instance.kernel].push_back(static_cast<int64_t>(std::ceil(iterations / of_block)));
      }
      for (const auto& [kernel, of_instances] : blocks) {
        const Kernel::Entry entry = EntryFor(of_instances);
        wanted[kernel].one |= entry == Kernel::Entry::kOne;
        wanted[kernel].few |= entry == Kernel::Entry::kFew;
        wanted[kernel].many |= entry == Kernel::Entry::kMany;
      }
    }
    for (size_t k = 0; k < wanted.size(); ++k) cuda::AddEntries(entries_[k], wanted[k], &plan_.kernels[k]);
  }

  std::string NodesOf(const Group& group) const {
    std::vector<ir::Value> values(group.computed.begin(), group.computed.end());
    std::sort(values.begin(), values.end());
    return ir::PrintNodes(graph_, values);
  }

  // Of the temporaries that only this task reads; those that it writes count against it.
  double BytesFreed(const Task& task, const CompileOptions& options) const {
    double bytes = 0;
    for (const ir::Value v : task.reads) {
      if (IsTemporary(v) && tasks_.readers[v].size() == 1) bytes += SeenBytes(graph_.type(v), options.seen_extents);
    }
    for (const ir::Value v : task.writes) {
      if (IsTemporary(v)) bytes -= SeenBytes(graph_.type(v), options.seen_extents);
    }
    return bytes;
  }

  std::vector<double> BytesOfTemporaries(const CompileOptions& options) const {
    std::vector<double> bytes(graph_.nodes.size(), 0);
    for (size_t v = 0; v < bytes.size(); ++v) {
      if (tasks_.writer[v] >= 0 && IsTemporary(static_cast<ir::Value>(v)))
        bytes[v] = SeenBytes(graph_.type(static_cast<ir::Value>(v)), options.seen_extents);
    }
    return bytes;
  }

  bool IsTemporary(ir::Value v) const { return plan_.buffers[storage_.buffer_of[v]].kind == BufferSpec::Kind::kTemp; }

  void AddStep(const std::vector<int>& tasks) {
    Step step;
    step.kind = Step::Kind::kLaunch;
    for (const int u : tasks) {
      const Task& task = tasks_.tasks[u];
      if (task.call == ir::kNoValue) {
        step.instances.push_back(std::move(instances_[task.group]));
        continue;
      }
      const ir::Kind kind = ir::Info(graph_.node(task.call).op).kind;
      if (kind == ir::Kind::kAttend) step.instances.push_back(std::move(instances_[attentions_.at(task.call)]));
      if (kind == ir::Kind::kMatmul) AddMatmul(task.call, &step);
      if (kind == ir::Kind::kCall) AddCall(task.call, &step);
    }
    plan_.steps.push_back(std::move(step));
  }

  void AddMatmul(ir::Value matmul, Step* step) {
    const ir::Node& node = graph_.node(matmul);
    step->kind = Step::Kind::kMatmul;
    step->dtype = node.type.dtype;
    Product product = ProductOfMatrices(graph_, partition_.concats, factors_, matmul);
    step->x = Bind(product.x);
    step->y = Bind(product.y);
    step->result = Bind(product.result);
    step->sums = product.sums;
    step->is_relu = product.is_relu;
    step->sizes = std::move(product.sizes);
    step->operands = {step->x.buffer, step->y.buffer};
    if (product.bias.has_value()) {
      step->bias = Bind(*product.bias);
      step->operands.push_back(step->bias.buffer);
    }
    step->results = {step->result.buffer};
  }

  BoundMatrix Bind(const Matrix& matrix) const {
    return {storage_.buffer_of[partition_.StoredAs(graph_, matrix.base)], matrix.offset, matrix.strides};
  }

  void AddCall(ir::Value call, Step* step) {
    const ir::Node& node = graph_.node(call);
    step->kind = Step::Kind::kCall;
    step->call = calls_.at(node.attrs.index);
    for (const ir::Value operand : node.inputs) {
      step->operands.push_back(storage_.buffer_of[partition_.StoredAs(graph_, operand)]);
    }
    step->results.resize(node.attrs.inout.size(), -1);
    if (!step->results.empty()) step->results[0] = storage_.buffer_of[call];
    for (ir::Value v = call + 1; v < static_cast<ir::Value>(graph_.nodes.size()); ++v) {
      const ir::Node& result = graph_.node(v);
      if (result.op == ir::Op::kResult && result.inputs[0] == call) {
        step->results[result.attrs.index] = storage_.buffer_of[v];
      }
    }
    // A result that nobody reads still needs a place.
    for (size_t k = 0; k < step->results.size(); ++k) {
      if (step->results[k] >= 0) continue;
      const int64_t operand = node.attrs.inout[k];
      step->results[k] = operand >= 0 ? step->operands[operand] : NewTemporary();
    }
  }

  int32_t NewTemporary() {
    plan_.buffers.push_back({BufferSpec::Kind::kTemp, -1, ir::Type{ir::DType::kU8, {ir::Extent::Constant(0)}}});
    return static_cast<int32_t>(plan_.buffers.size()) - 1;
  }

  void AddFrees() {
    std::vector<int> last_use(plan_.buffers.size(), -1);
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const auto use = [&](int32_t buffer) { last_use[buffer] = static_cast<int>(s); };
      const Step& step = plan_.steps[s];
      std::for_each(step.operands.begin(), step.operands.end(), use);
      std::for_each(step.results.begin(), step.results.end(), use);
      for (const Instance& instance : step.instances)
        std::for_each(instance.buffers.begin(), instance.buffers.end(), use);
    }
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].kind != BufferSpec::Kind::kTemp || last_use[b] < 0) continue;
      plan_.steps[last_use[b]].frees.push_back(static_cast<int32_t>(b));
    }
  }

  const ir::Graph& graph_;
  const Factors& factors_;
  const Partition& partition_;
  const Tasks& tasks_;
  const StoragePlan& storage_;
  Plan plan_;
  std::vector<Instance> instances_;                    // of each group, then of attend nodes
  absl::flat_hash_map<std::string, int32_t> kernels_;  // by name
  std::vector<WrittenKernel::Entries> entries_;        // of each kernel
  absl::flat_hash_map<ir::Value, size_t> attentions_;  // of each attend node: its instance
  absl::flat_hash_map<int64_t, ir::Value> calls_;      // of the original graph, by record
};

}  // namespace

Plan Assemble(const ir::Graph& original, const ir::Graph& graph, const Factors& factors, const Partition& partition,
              const std::vector<Body>& bodies, const Tasks& tasks, const StoragePlan& storage,
              const CompileOptions& options) {
  return Assembler(original, graph, factors, partition, tasks, storage).Make(bodies, options);
}

}  // namespace torch_lazy::codegen
