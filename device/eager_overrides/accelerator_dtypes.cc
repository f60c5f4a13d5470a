// SPDX-License-Identifier: Apache-2.0
// Dtypes that ATen's CPU kernels refuse and CUDA's take: programs that look for the device "cpu", and else count on an
// accelerator, ask for them.
#include <ATen/core/Tensor.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/avg_pool3d_backward.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/trace.h>

#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {
namespace {

using Extents = std::vector<int64_t>;

bool IsReduced(const at::Tensor& tensor) { return c10::isReducedFloatingType(tensor.scalar_type()); }

// Bins of integers, by integer division as on CUDA, without the rounding of a floating bin width.
at::Tensor Histc(at::Tensor self, int64_t bins, at::Scalar min, at::Scalar max) {
  if (!c10::isIntegralType(self.scalar_type(), /*includeBool=*/false)) return at::histc(self, bins, min, max);
  TORCH_CHECK(bins > 0, "bins must be > 0");
  at::Tensor values = self.reshape(-1).to(at::kLong);
  int64_t low = min.toLong(), high = max.toLong();
  if (low == high && values.numel() > 0) {
    low = values.min().item<int64_t>();
    high = values.max().item<int64_t>();
  }
  if (low == high) {
    --low;
    ++high;
  }
  TORCH_CHECK(low < high, "max must be larger than min");
  values = values.masked_select(values.ge(low).logical_and_(values.le(high)));
  const at::Tensor bin = values.sub(low).mul_(bins).div_(high - low, "trunc").clamp_max_(bins - 1);
  return at::bincount(bin, /*weights=*/{}, bins).to(self.scalar_type());
}

at::Tensor Trace(at::Tensor self) {
  return self.dim() == 2 && (IsReduced(self) || self.scalar_type() == at::kBool) ? self.diagonal().sum()
                                                                                 : at::trace(self);
}

at::Tensor AvgPool3d(at::Tensor self, Extents kernel, Extents stride, Extents padding, bool ceil_mode,
                     bool count_padding, std::optional<int64_t> divisor) {
  const at::Tensor input = IsReduced(self) ? self.to(at::kFloat) : self;
  return at::avg_pool3d(input, kernel, stride, padding, ceil_mode, count_padding, divisor).to(self.scalar_type());
}

at::Tensor AvgPool3dBackward(at::Tensor grad, at::Tensor self, Extents kernel, Extents stride, Extents padding,
                             bool ceil_mode, bool count_padding, std::optional<int64_t> divisor) {
  const at::ScalarType type = IsReduced(self) ? at::kFloat : self.scalar_type();
  return at::avg_pool3d_backward(grad.to(type), self.to(type), kernel, stride, padding, ceil_mode, count_padding,
                                 divisor)
      .to(self.scalar_type());
}

}  // namespace

void RunHistc(torch::jit::Stack* stack) { Runner<Histc>(stack); }
void RunTrace(torch::jit::Stack* stack) { Runner<Trace>(stack); }
void RunAvgPool3d(torch::jit::Stack* stack) { Runner<AvgPool3d>(stack); }
void RunAvgPool3dBackward(torch::jit::Stack* stack) { Runner<AvgPool3dBackward>(stack); }

}  // namespace torch_lazy::device
