// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/factories.h"

#include <ATen/native/RangeUtils.h>
#include <c10/core/DefaultDtype.h>

namespace torch_lazy::device::shapes {

// (start, end, step, out), whose length is that of the range
bool Arange(ShapeCall& call) {
  const at::Tensor& out = call.Tensor(3);
  const at::Scalar start = call.Number(0), end = call.Number(1), step = call.Number(2);
  const int64_t length = out.scalar_type() == at::kLong ? at::native::compute_arange_size<int64_t>(start, end, step)
                                                        : at::native::compute_arange_size<double>(start, end, step);
  return out.dim() == 1 && out.size(0) == length && call.ReturnWritten(3);
}

bool Linspace(ShapeCall& call) {
  return call.Int(2) >= 0 && call.Return({call.Int(2)}, call.DType(3, c10::get_default_dtype_as_scalartype()));
}
bool Eye(ShapeCall& call) {
  return call.Int(0) >= 0 &&
         call.Return({call.Int(0), call.Int(0)}, call.DType(1, c10::get_default_dtype_as_scalartype()));
}
bool EyeOf(ShapeCall& call) {
  return call.Int(0) >= 0 && call.Int(1) >= 0 &&
         call.Return({call.Int(0), call.Int(1)}, call.DType(2, c10::get_default_dtype_as_scalartype()));
}

}  // namespace torch_lazy::device::shapes
