// SPDX-License-Identifier: Apache-2.0
#include "lazy/run/bound_product.h"

#include <algorithm>

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_addmm_activation.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zero.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "backends/registry.h"
#include "base/check.h"
#include "base/metrics.h"
#include "lazy/eager/on_host.h"
#include "lazy/libraries/product_threads.h"

namespace torch_lazy::lazy {
namespace {

// Below, a second thread hardly gains what it costs, and much less where another thread has a team, too.
constexpr double kSerialOperations = 6e5;

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

BoundProduct BindProduct(const codegen::Step& step, absl::Span<const int64_t> symbols) {
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
  BoundProduct product{bind(step.x, rows, inner), bind(step.y, inner, columns), bind(step.result, rows, columns), {}};
  if (step.bias.buffer >= 0) {
    product.bias.dtype = product.result.dtype;
    product.bias.sizes = {sizes[columns]};
    product.bias.strides = {1};
    product.bias.offset = step.bias.offset.Value(symbols);
  }
  const double operations =
      2.0 * static_cast<double>(c10::multiply_integers(product.x.sizes) * product.result.sizes.back());
  product.is_small = IsOnHost() && operations < kSerialOperations;
  return product;
}

void Tune(const codegen::Step& step, bool deterministic, BoundProduct* product) {
  if (step.sums) return;
  if (!IsOnHost()) {
    product->tuned_cuda = TunedCudaProduct::For(product->x, product->y, product->bias, product->result, step.is_relu);
  } else if (step.bias.buffer < 0) {
    product->tuned = TunedProduct::For(product->x, product->y, product->result, deterministic);
  }
}

void RunProduct(const BoundProduct& product, const codegen::Step& step, PlanMemory* memory) {
  if (!backends::Get().computes()) return;
  ProductTensors tensors;
  tensors.result = Alias(memory->Content(step.result.buffer), product.result);
  if (tensors.result.numel() == 0) return;
  tensors.x = Alias(memory->Content(step.x.buffer), product.x);
  tensors.y = Alias(memory->Content(step.y.buffer), product.y);
  if (step.bias.buffer >= 0) tensors.bias = Alias(memory->Content(step.bias.buffer), product.bias);
  tensors.is_relu = step.is_relu;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  base::Count(base::Counter::kLibraryCalls);
  const OneProductThread one(product.is_small);
  if (product.tuned != nullptr) {
    product.tuned->Run(tensors.x, tensors.y, &tensors.result);
  } else if (product.tuned_cuda != nullptr) {
    product.tuned_cuda->Run(tensors, [&] { Multiply(tensors, step.sums); });
  } else {
    Multiply(tensors, step.sums);
  }
}

}  // namespace torch_lazy::lazy
