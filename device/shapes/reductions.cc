// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/reductions.h"

#include <vector>

namespace torch_lazy::device::shapes {
namespace {

// Sizes of `self` without the dimensions given; none given: without any. False if one is out of range or given twice.
bool Reduced(const at::Tensor& self, const std::vector<int64_t>& dims, bool keep, c10::DimVector* sizes) {
  const int64_t rank = self.dim();
  std::vector<bool> gone(static_cast<size_t>(rank), dims.empty());
  for (const int64_t given : dims) {
    const int64_t dim = given < 0 ? given + std::max<int64_t>(rank, 1) : given;
    if (rank == 0 && dim == 0) continue;
    if (dim < 0 || dim >= rank || gone[dim]) return false;
    gone[dim] = true;
  }
  for (int64_t d = 0; d < rank; ++d) {
    if (!gone[d])
      sizes->push_back(self.size(d));
    else if (keep)
      sizes->push_back(1);
  }
  return true;
}

bool ReturnReduced(ShapeCall& call, const std::vector<int64_t>& dims, bool keep,
                   std::initializer_list<at::ScalarType> dtypes) {
  c10::DimVector sizes;
  if (!Reduced(call.Tensor(0), dims, keep, &sizes)) return false;
  for (const at::ScalarType dtype : dtypes) call.Return(sizes, dtype);
  return true;
}

std::vector<int64_t> DimsOf(ShapeCall& call, size_t arg) {
  return call.Has(arg) ? call.Ints(arg) : std::vector<int64_t>();
}

at::ScalarType Own(ShapeCall& call) { return call.Tensor(0).scalar_type(); }
at::ScalarType OfSum(ShapeCall& call) {
  return at::isIntegralType(Own(call), /*includeBool=*/true) ? at::kLong : Own(call);
}
at::ScalarType OfTruth(ShapeCall& call) { return Own(call) == at::kByte ? at::kByte : at::kBool; }
at::ScalarType OfSpread(ShapeCall& call) { return c10::toRealValueType(Own(call)); }

}  // namespace

// (self, dtype?)
bool Sum(ShapeCall& call) { return ReturnReduced(call, {}, false, {call.DType(1, OfSum(call))}); }
bool Mean(ShapeCall& call) { return ReturnReduced(call, {}, false, {call.DType(1, Own(call))}); }
// (self, dims?, keep, dtype?)
bool SumOverDims(ShapeCall& call) {
  return ReturnReduced(call, DimsOf(call, 1), call.Bool(2), {call.DType(3, OfSum(call))});
}
bool MeanOverDims(ShapeCall& call) {
  return ReturnReduced(call, DimsOf(call, 1), call.Bool(2), {call.DType(3, Own(call))});
}
// (self, dim, keep, dtype?)
bool ProdOverDim(ShapeCall& call) {
  return ReturnReduced(call, {call.Int(1)}, call.Bool(2), {call.DType(3, OfSum(call))});
}
// Of nothing, there is no greatest; which dimension is empty is not asked.
// (self, dims, keep)
bool ExtremeOverDims(ShapeCall& call) {
  return call.Tensor(0).numel() != 0 && ReturnReduced(call, DimsOf(call, 1), call.Bool(2), {Own(call)});
}
// (self)
bool Extreme(ShapeCall& call) { return call.Tensor(0).numel() != 0 && ReturnReduced(call, {}, false, {Own(call)}); }
bool Truth(ShapeCall& call) { return ReturnReduced(call, {}, false, {OfTruth(call)}); }
// (self, dim, keep)
bool TruthOverDim(ShapeCall& call) { return ReturnReduced(call, {call.Int(1)}, call.Bool(2), {OfTruth(call)}); }
// (self, dim, keep) -> (values, indices)
bool ExtremeOverDim(ShapeCall& call) {
  return call.Tensor(0).numel() != 0 && ReturnReduced(call, {call.Int(1)}, call.Bool(2), {Own(call), at::kLong});
}
// (self, k, dim, keep) -> (values, indices)
bool KthValue(ShapeCall& call) {
  const int64_t dim = call.Dim(2, call.Tensor(0).dim());
  return dim >= 0 && call.Int(1) > 0 && call.Int(1) <= call.Tensor(0).size(dim) &&
         ReturnReduced(call, {dim}, call.Bool(3), {Own(call), at::kLong});
}
// (self, dim?, keep)
bool ArgExtreme(ShapeCall& call) {
  const std::vector<int64_t> dims = call.Has(1) ? std::vector<int64_t>{call.Int(1)} : std::vector<int64_t>();
  return call.Tensor(0).numel() != 0 && ReturnReduced(call, dims, call.Bool(2), {at::kLong});
}
// (self, dims?, correction?, keep)
bool Spread(ShapeCall& call) { return ReturnReduced(call, DimsOf(call, 1), call.Bool(3), {OfSpread(call)}); }
// (self, dims?, correction?, keep) -> (spread, mean)
bool SpreadAndMean(ShapeCall& call) {
  return ReturnReduced(call, DimsOf(call, 1), call.Bool(3), {OfSpread(call), Own(call)});
}
// (self, order, dims?, keep, dtype?)
bool VectorNorm(ShapeCall& call) {
  return call.Tensor(0).numel() != 0 &&
         ReturnReduced(call, DimsOf(call, 2), call.Bool(3), {call.DType(4, OfSpread(call))});
}
// (self, order?, dims, keep)
bool NormOverDims(ShapeCall& call) {
  return call.Tensor(0).numel() != 0 && ReturnReduced(call, DimsOf(call, 2), call.Bool(3), {OfSpread(call)});
}

// (self, dim, dtype?)
bool Cumulative(ShapeCall& call) {
  const at::Tensor& self = call.Tensor(0);
  return (self.dim() == 0 || call.Dim(1, self.dim()) >= 0) && call.Return(self.sizes(), call.DType(2, OfSum(call)));
}
// (self, dim, half_to_float)
bool Softmax(ShapeCall& call) {
  const at::Tensor& self = call.Tensor(0);
  return (self.dim() == 0 || call.Dim(1, self.dim()) >= 0) && !call.Bool(2) && call.ReturnLike(self);
}
// (grad, output, dim, dtype)
bool SoftmaxBackward(ShapeCall& call) {
  const at::Tensor &grad = call.Tensor(0), &output = call.Tensor(1);
  return grad.sizes() == output.sizes() && call.DType(3, at::kFloat) == grad.scalar_type() && call.ReturnLike(grad);
}

}  // namespace torch_lazy::device::shapes
