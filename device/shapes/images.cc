// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/images.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <ATen/native/Pool.h>

namespace torch_lazy::device::shapes {
namespace {

using Ints = std::vector<int64_t>;

// One number for each of the dimensions, one for all of them, or none.
bool AreFor(int64_t num_dims, std::initializer_list<const Ints*> lists) {
  for (const Ints* list : lists) {
    if (list->size() > 1 && list->size() != static_cast<size_t>(num_dims)) return false;
  }
  return true;
}

// Number k of such an argument.
int64_t At(const Ints& list, size_t k, int64_t if_none) {
  return list.empty() ? if_none : list.size() == 1 ? list[0] : list[k];
}

bool ReturnLikeInput(ShapeCall& call, c10::IntArrayRef sizes, const at::Tensor& input) {
  return call.Return(sizes, input.suggest_memory_format(), input.scalar_type());
}

// Sizes after pooling over the last two dimensions.
bool Pooled(const at::Tensor& input, const Ints& kernel, const Ints& stride, const Ints& padding, const Ints& dilation,
            bool ceil, c10::DimVector* sizes) {
  if ((input.dim() != 3 && input.dim() != 4) || input.numel() == 0) return false;
  if (kernel.empty() || !AreFor(2, {&kernel, &stride, &padding, &dilation})) return false;
  *sizes = input.sizes();
  for (size_t k = 0; k < 2; ++k) {
    int64_t& size = (*sizes)[sizes->size() - 2 + k];
    const int64_t extent = At(kernel, k, 1), step = stride.empty() ? extent : At(stride, k, 1);
    if (extent <= 0 || step <= 0 || At(dilation, k, 1) <= 0) return false;
    size = at::native::pooling_output_shape<int64_t>(size, extent, At(padding, k, 0), step, At(dilation, k, 1), ceil);
    if (size <= 0) return false;
  }
  return true;
}

}  // namespace

// (input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
bool Convolution(ShapeCall& call) {
  const at::Tensor &input = call.Tensor(0), &weight = call.Tensor(1);
  const Ints stride = call.Ints(3), padding = call.Ints(4), dilation = call.Ints(5), output_padding = call.Ints(7);
  const bool transposed = call.Bool(6);
  const int64_t groups = call.Int(8), rank = input.dim();
  if (rank < 3 || weight.dim() != rank || input.numel() == 0 || groups <= 0) return false;
  if (!AreFor(rank - 2, {&stride, &padding, &dilation, &output_padding})) return false;
  if (input.size(1) != (transposed ? weight.size(0) : weight.size(1) * groups)) return false;
  c10::DimVector sizes = {input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  if (sizes[1] % groups != 0 || (call.Has(2) && call.Tensor(2).sizes() != c10::IntArrayRef({sizes[1]}))) return false;
  for (size_t k = 0; k + 2 < static_cast<size_t>(rank); ++k) {
    const int64_t step = At(stride, k, 1), pad = At(padding, k, 0), spread = At(dilation, k, 1),
                  more = At(output_padding, k, 0);
    const int64_t size = input.size(k + 2), kernel = spread * (weight.size(k + 2) - 1) + 1;
    if (step <= 0 || pad < 0 || spread <= 0 || kernel <= 0) return false;
    if (transposed && (more < 0 || more >= std::max(step, spread))) return false;
    if (!transposed && size + 2 * pad < kernel) return false;
    sizes.push_back(transposed ? (size - 1) * step - 2 * pad + kernel + more : (size + 2 * pad - kernel) / step + 1);
    if (sizes.back() <= 0) return false;
  }
  const bool rows = input.suggest_memory_format() == at::MemoryFormat::Contiguous;
  return call.Return(sizes, rows ? weight.suggest_memory_format() : input.suggest_memory_format(), input.scalar_type());
}

// (grad, input, weight, bias_sizes?, stride, padding, dilation, transposed, output_padding, groups, wanted)
bool ConvolutionBackward(ShapeCall& call) {
  const at::Tensor &grad = call.Tensor(0), &input = call.Tensor(1), &weight = call.Tensor(2);
  const std::vector<bool> wanted = call.Bools(10);
  if (grad.dim() != input.dim() || grad.size(0) != input.size(0) || input.numel() == 0) return false;
  const bool rows = input.suggest_memory_format() == at::MemoryFormat::Contiguous;
  const at::MemoryFormat format = rows ? weight.suggest_memory_format() : input.suggest_memory_format();
  if (wanted[0])
    call.Return(input.sizes(), format, input.scalar_type());
  else
    call.ReturnUndefined();
  if (wanted[1])
    call.Return(weight.sizes(), format, weight.scalar_type());
  else
    call.ReturnUndefined();
  return wanted[2] ? call.Return({grad.size(1)}, grad.scalar_type()) : call.ReturnUndefined();
}

// (input, kernel, stride, padding, dilation, ceil) -> (output, indices)
bool MaxPool(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(0);
  c10::DimVector sizes;
  return Pooled(input, call.Ints(1), call.Ints(2), call.Ints(3), call.Ints(4), call.Bool(5), &sizes) &&
         ReturnLikeInput(call, sizes, input) && call.Return(sizes, input.suggest_memory_format(), at::kLong);
}

// (input, kernel, stride, padding, ceil, ...)
bool AveragePool(ShapeCall& call) {
  c10::DimVector sizes;
  if (call.Has(6) && call.Int(6) == 0) return false;  // the divisor
  return Pooled(call.Tensor(0), call.Ints(1), call.Ints(2), call.Ints(3), {}, call.Bool(4), &sizes) &&
         ReturnLikeInput(call, sizes, call.Tensor(0));
}

// (grad, input, ...): pooling's gradient. What the gradient's sizes must be, the forward call has told.
bool PoolBackward(ShapeCall& call) {
  const at::Tensor &grad = call.Tensor(0), &input = call.Tensor(1);
  if (grad.dim() != input.dim() || grad.numel() == 0) return false;
  for (int64_t d = 0; d + 2 < input.dim(); ++d) {
    if (grad.size(d) != input.size(d)) return false;
  }
  return ReturnLikeInput(call, input.sizes(), input);
}

// (input, output_size, ...): the last two dimensions get it.
bool Resize(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(0);
  const Ints size = call.Ints(1);
  if ((input.dim() != 3 && input.dim() != 4) || input.numel() == 0 || size.size() != 2 || size[0] <= 0 || size[1] <= 0)
    return false;
  c10::DimVector sizes(input.sizes());
  sizes[sizes.size() - 2] = size[0];
  sizes[sizes.size() - 1] = size[1];
  return ReturnLikeInput(call, sizes, input);
}

// (grad, output_size, input_size, ...)
bool ResizeBackward(ShapeCall& call) {
  const at::Tensor& grad = call.Tensor(0);
  const Ints size = call.Ints(1), input = call.Ints(2);
  if (grad.dim() != 4 || input.size() != 4 || size.size() != 2 || grad.size(0) != input[0] ||
      grad.size(1) != input[1] || grad.size(2) != size[0] || grad.size(3) != size[1]) {
    return false;
  }
  return ReturnLikeInput(call, input, grad);
}

// (input, pads, value): from the last dimension on, before and after.
bool Pad(ShapeCall& call) {
  const at::Tensor& input = call.Tensor(0);
  const Ints pads = call.Ints(1);
  if (pads.size() % 2 != 0 || pads.size() > 2 * static_cast<size_t>(input.dim())) return false;
  c10::DimVector sizes(input.sizes());
  for (size_t k = 0; k < pads.size() / 2; ++k) {
    int64_t& size = sizes[sizes.size() - 1 - k];
    size += pads[2 * k] + pads[2 * k + 1];
    if (size <= 0) return false;
  }
  return ReturnLikeInput(call, sizes, input);
}

}  // namespace torch_lazy::device::shapes
