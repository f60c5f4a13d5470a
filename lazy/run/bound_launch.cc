// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/bound_launch.h"

#include "backends/registry.h"
#include "base/faults.h"
#include "lazy/host/raise.h"

namespace torch_lazy::lazy {

void BoundLaunch::Add(const codegen::Instance& instance, const codegen::Plan& plan, const backends::Module& module,
                      absl::Span<const int64_t> symbols) {
  const int64_t iterations = ir::NumElements(instance.range, symbols);
  if (iterations == 0) return;
  buffers_.insert(buffers_.end(), instance.buffers.begin(), instance.buffers.end());
  for (size_t k = 0; k < instance.buffers.size(); ++k) {
    const ir::DType dtype = plan.buffers[static_cast<size_t>(instance.buffers[k])].type.dtype;
    offset_bytes_.push_back(instance.offsets[k].Value(symbols) * ir::SizeBytes(dtype));
  }
  scalars_.insert(scalars_.end(), instance.scalars.begin(), instance.scalars.end());
  for (const codegen::Polynomial& extent : instance.extents) extents_.push_back(extent.Value(symbols));
  backends::BoundInstance& bound = instances_.emplace_back();
  bound.function = module.Function(instance.kernel);
  bound.buffers = absl::MakeConstSpan(static_cast<void* const*>(nullptr), instance.buffers.size());
  bound.scalars = absl::MakeConstSpan(static_cast<const double*>(nullptr), instance.scalars.size());
  bound.extents = absl::MakeConstSpan(static_cast<const int64_t*>(nullptr), instance.extents.size());
  bound.iterations = iterations;
  bound.grain = instance.grain;
  bound.cost_per_iteration = instance.cost_per_iteration;
  bound.scratch_bytes = codegen::ScratchBytes(instance, symbols);
}

size_t BoundLaunch::ArgumentBytes() const { return instances_.empty() ? 0 : backends::Get().LaunchBytes(instances_); }

double BoundLaunch::Cost() const {
  double cost = 0;
  for (const backends::BoundInstance& instance : instances_) {
    cost += static_cast<double>(instance.iterations) * instance.cost_per_iteration;
  }
  return cost;
}

void BoundLaunch::Follow() {
  if (!instances_.empty()) instances_[0].follows_launch = true;
}

void BoundLaunch::Run(PlanMemory* memory) const {
  if (instances_.empty()) return;
  std::vector<void*> pointers(buffers_.size());
  for (size_t i = 0; i < pointers.size(); ++i) {
    pointers[i] = static_cast<char*>(memory->Address(buffers_[i])) + offset_bytes_[i];
  }
  std::vector<double> scalars(scalars_.size());
  for (size_t i = 0; i < scalars.size(); ++i) scalars[i] = memory->numbers[scalars_[i]];
  std::vector<backends::BoundInstance> instances = instances_;
  void* const* pointer = pointers.data();
  const double* scalar = scalars.data();
  const int64_t* extent = extents_.data();
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

}  // namespace torch_lazy::lazy
