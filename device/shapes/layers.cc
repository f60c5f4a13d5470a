// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/layers.h"

#include <ATen/AccumulateType.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>

#include "lazy/eager/on_host.h"

namespace torch_lazy::device::shapes {
namespace {

bool ReturnGradient(ShapeCall& call, bool wanted, const at::Tensor& of) {
  return wanted ? call.ReturnLike(of) : call.ReturnUndefined();
}

// Of the normalised dimensions, the last ones.
bool EndsWith(c10::IntArrayRef sizes, c10::IntArrayRef end) {
  return end.size() <= sizes.size() && sizes.slice(sizes.size() - end.size()) == end;
}

// A GPU's kernels return them as they add them up.
at::ScalarType StatisticsOf(const at::Tensor& input, at::ScalarType on_host) {
  return lazy::IsOnHost() ? on_host : at::toAccumulateType(input.scalar_type(), /*is_cuda=*/true);
}

bool AreOfChannels(ShapeCall& call, std::initializer_list<size_t> parameters, int64_t channels) {
  for (const size_t parameter : parameters) {
    if (call.Has(parameter) && call.Tensor(parameter).sizes() != c10::IntArrayRef({channels})) return false;
  }
  return true;
}

}  // namespace

// (weight, indices, ...)
bool Embedding(ShapeCall& call) {
  const at::Tensor& weight = call.Tensor(0);
  if (weight.dim() != 2) return false;
  c10::DimVector sizes(call.Tensor(1).sizes());
  sizes.push_back(weight.size(1));
  return call.Return(sizes, weight.scalar_type());
}

// (grad, indices, num_weights, ...)
bool EmbeddingBackward(ShapeCall& call) {
  const at::Tensor &grad = call.Tensor(0), &indices = call.Tensor(1);
  if (grad.dim() != indices.dim() + 1 || grad.sizes().slice(0, indices.dim()) != indices.sizes()) return false;
  return call.Return({call.Int(2), grad.size(-1)}, grad.scalar_type());
}

// (input, normalized_shape, weight?, bias?, eps) -> (output, mean, rstd)
bool LayerNorm(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(0);
  const std::vector<int64_t> normalized = call.Ints(1);
  if (normalized.empty() || !EndsWith(input.sizes(), normalized)) return false;
  for (const size_t parameter : {2, 3}) {
    if (call.Has(parameter) && call.Tensor(parameter).sizes() != c10::IntArrayRef(normalized)) return false;
  }
  c10::DimVector sizes(input.sizes());
  std::fill(sizes.end() - static_cast<ptrdiff_t>(normalized.size()), sizes.end(), 1);
  const at::ScalarType dtype =
      call.Has(2) && call.Tensor(2).scalar_type() != input.scalar_type() ? at::kFloat : input.scalar_type();
  return call.ReturnLike(input) && call.Return(sizes, StatisticsOf(input, dtype)) &&
         call.Return(sizes, StatisticsOf(input, dtype));
}

// (grad, input, normalized_shape, mean, rstd, weight?, bias?, wanted)
bool LayerNormBackward(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(1);
  const std::vector<bool> wanted = call.Bools(7);
  if (call.Tensor(0).sizes() != input.sizes() || !EndsWith(input.sizes(), call.Ints(2))) return false;
  if ((wanted[1] && !call.Has(5)) || (wanted[2] && !call.Has(6))) return false;
  return ReturnGradient(call, wanted[0], input) &&
         ReturnGradient(call, wanted[1], wanted[1] ? call.Tensor(5) : input) &&
         ReturnGradient(call, wanted[2], wanted[2] ? call.Tensor(6) : input);
}

// (input, weight?, bias?, n, c, hw, groups, eps) -> (output, mean, rstd)
bool GroupNorm(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(0);
  const int64_t n = call.Int(3), c = call.Int(4), groups = call.Int(6);
  if (input.dim() < 2 || input.size(0) != n || input.size(1) != c || groups <= 0 || c % groups != 0) return false;
  for (const size_t parameter : {1, 2}) {
    if (call.Has(parameter) && call.Tensor(parameter).sizes() != c10::IntArrayRef({c})) return false;
  }
  const at::ScalarType dtype =
      call.Has(1) && call.Tensor(1).scalar_type() != input.scalar_type() ? at::kFloat : input.scalar_type();
  return call.Return(input.sizes(), input.suggest_memory_format(), input.scalar_type()) &&
         call.Return({n, groups}, dtype) && call.Return({n, groups}, dtype);
}

// (grad, input, mean, rstd, weight?, n, c, hw, groups, wanted)
bool GroupNormBackward(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(1);
  const std::vector<bool> wanted = call.Bools(9);
  if (call.Tensor(0).sizes() != input.sizes()) return false;
  const int64_t c = call.Int(6);
  const at::ScalarType dtype = call.Has(4) ? call.Tensor(4).scalar_type() : input.scalar_type();
  if (wanted[0])
    call.Return(input.sizes(), input.suggest_memory_format(), input.scalar_type());
  else
    call.ReturnUndefined();
  if (wanted[1])
    call.Return({c}, dtype);
  else
    call.ReturnUndefined();
  return wanted[2] ? call.Return({c}, dtype) : call.ReturnUndefined();
}

// (input, weight?, bias?, running_mean, running_var, training, ...) -> (output, mean, rstd)
bool BatchNorm(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(0);
  if (input.dim() < 2 || !AreOfChannels(call, {1, 2, 3, 4}, input.size(1))) return false;
  if (call.Bool(5) && input.numel() <= input.size(1)) return false;  // one value a channel may be refused
  const at::ScalarType dtype = StatisticsOf(input, call.Has(1) ? call.Tensor(1).scalar_type() : input.scalar_type());
  const int64_t saved = call.Bool(5) || !lazy::IsOnHost() ? input.size(1) : 0;
  return call.Return(input.sizes(), input.suggest_memory_format(), input.scalar_type()) &&
         call.Return({saved}, dtype) && call.Return({saved}, dtype);
}

// (grad, input, weight?, running_mean?, running_var?, mean?, rstd?, training, eps, wanted)
bool BatchNormBackward(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(1);
  const std::vector<bool> wanted = call.Bools(9);
  if (call.Tensor(0).sizes() != input.sizes() || input.dim() < 2) return false;
  const int64_t c = input.size(1);
  const at::ScalarType dtype = call.Has(2) ? call.Tensor(2).scalar_type() : input.scalar_type();
  if (wanted[0])
    call.Return(input.sizes(), input.suggest_memory_format(), input.scalar_type());
  else
    call.ReturnUndefined();
  if (wanted[1])
    call.Return({c}, dtype);
  else
    call.ReturnUndefined();
  return wanted[2] ? call.Return({c}, dtype) : call.ReturnUndefined();
}

// (self, target, reduction, ...): 0-dimensional unless nothing is reduced.
bool Loss(ShapeCall& call) {
  const at::Tensor& self = call.Tensor(0);
  if (self.scalar_type() != call.Tensor(1).scalar_type()) return false;
  at::infer_size_dimvector(self.sizes(), call.Tensor(1).sizes());
  return call.Int(2) == at::Reduction::None ? call.ReturnElementwise(self.scalar_type())
                                            : call.Return({}, self.scalar_type());
}

// (grad, self, target, reduction, ...)
bool LossBackward(ShapeCall& call) {
  return call.Tensor(1).scalar_type() == call.Tensor(2).scalar_type() &&
         call.ReturnElementwise(call.Tensor(1).scalar_type());
}

// (self, target, weight?, reduction, ignore_index) -> (loss, total_weight)
bool NllLoss(ShapeCall& call) {
  const at::Tensor &self = call.Tensor(0), &target = call.Tensor(1);
  if (self.dim() != 2 || target.dim() != 1 || self.size(0) != target.size(0)) return false;
  if (call.Has(2) && call.Tensor(2).sizes() != self.sizes().slice(1)) return false;
  if (call.Int(3) == at::Reduction::None)
    call.Return({self.size(0)}, self.scalar_type());
  else
    call.Return({}, self.scalar_type());
  return call.Return({}, self.scalar_type());
}

// (grad, self, target, weight?, reduction, ignore_index, total_weight)
bool NllLossBackward(ShapeCall& call) {
  const at::Tensor &self = call.Tensor(1), &target = call.Tensor(2);
  if (self.dim() != 2 || target.dim() != 1 || self.size(0) != target.size(0)) return false;
  if (call.Tensor(0).dim() != (call.Int(4) == at::Reduction::None ? 1 : 0)) return false;
  if (call.Tensor(0).dim() == 1 && call.Tensor(0).size(0) != self.size(0)) return false;
  return call.ReturnLike(self);
}

// (self, least, greatest)
bool Clamp(ShapeCall& call) { return call.ReturnElementwise(call.Tensor(0).scalar_type()); }

// (self) -> (output, buffer), the latter of nothing on a GPU
bool LogSigmoid(ShapeCall& call) {
  const at::Tensor& self = call.Tensor(0);
  return call.ReturnLike(self) && (lazy::IsOnHost() ? call.ReturnLike(self) : call.Return({0}, self.scalar_type()));
}

// (input, ...) -> (output, which elements are kept), as empty_like
bool Dropout(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(0);
  const std::vector<int64_t> strides = input.is_non_overlapping_and_dense()
                                           ? input.strides().vec()
                                           : at::infer_dense_strides(input.sizes(), input.strides());
  return call.Return(input.sizes(), strides, input.scalar_type()) && call.Return(input.sizes(), strides, at::kBool);
}

}  // namespace torch_lazy::device::shapes
