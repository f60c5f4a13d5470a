// SPDX-License-Identifier: Apache-2.0
#include "device/shapes/products.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>

#include "device/eager_overrides/fused_attention.h"

namespace torch_lazy::device::shapes {
namespace {

// Of (..., n, k) and (..., k, m), both of rank 2 or both of rank 3.
bool ProductSizes(const at::Tensor& left, const at::Tensor& right, c10::DimVector* sizes) {
  const int64_t rank = left.dim();
  if (right.dim() != rank || left.size(rank - 1) != right.size(rank - 2)) return false;
  if (rank == 3 && left.size(0) != right.size(0)) return false;
  *sizes = left.sizes();
  sizes->back() = right.size(rank - 1);
  return true;
}

bool IsAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4) return false;
  return query.size(0) == key.size(0) && query.size(1) == key.size(1) && query.size(3) == key.size(3) &&
         value.sizes() == key.sizes();
}

// The kernels work on (batch, length, head, ...), and return that transposed.
bool ReturnOfHeads(ShapeCall& call, int64_t batch, int64_t heads, int64_t length, int64_t width, at::ScalarType dtype) {
  return call.Return({batch, heads, length, width}, {length * heads * width, width, heads * width, 1}, dtype);
}
bool ReturnOfHeads(ShapeCall& call, const at::Tensor& like) {
  return ReturnOfHeads(call, like.size(0), like.size(1), like.size(2), like.size(3), like.scalar_type());
}

// Dense, in the order of a tensor's strides.
bool ReturnInOrder(ShapeCall& call, const at::Tensor& like) {
  const std::vector<int64_t> strides = like.is_non_overlapping_and_dense()
                                           ? like.strides().vec()
                                           : at::infer_dense_strides(like.sizes(), like.strides());
  return call.Return(like.sizes(), strides, like.scalar_type());
}

}  // namespace

bool Product(ShapeCall& call) {
  c10::DimVector sizes;
  return ProductSizes(call.Tensor(0), call.Tensor(1), &sizes) && call.Return(sizes, call.Tensor(0).scalar_type());
}

// (added, left, right, ...)
bool ProductAndSum(ShapeCall& call) {
  c10::DimVector sizes;
  return ProductSizes(call.Tensor(1), call.Tensor(2), &sizes) && at::is_expandable_to(call.Tensor(0).sizes(), sizes) &&
         call.Return(sizes, call.Tensor(1).scalar_type());
}

bool MatrixVector(ShapeCall& call) {
  const at::Tensor &matrix = call.Tensor(0), &vector = call.Tensor(1);
  return matrix.size(1) == vector.size(0) && call.Return({matrix.size(0)}, matrix.scalar_type());
}

bool Dot(ShapeCall& call) {
  return call.Tensor(0).sizes() == call.Tensor(1).sizes() && call.Return({}, call.Tensor(0).scalar_type());
}

// (input, weight, bias?)
bool Linear(ShapeCall& call) {
  const at::Tensor &input = call.Tensor(0), &weight = call.Tensor(1);
  if (weight.dim() != 2 || input.dim() == 0 || input.size(-1) != weight.size(1) || !input.is_contiguous()) return false;
  if (call.Has(2) && call.Tensor(2).sizes() != weight.sizes().slice(0, 1)) return false;
  c10::DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  return call.Return(sizes, input.scalar_type());
}

// (input, grad, weight, wanted)
bool LinearBackward(ShapeCall& call) {
  const at::Tensor &input = call.Tensor(0), &grad = call.Tensor(1), &weight = call.Tensor(2);
  const std::vector<bool> wanted = call.Bools(3);
  if (grad.dim() != input.dim() || grad.dim() == 0 || weight.dim() != 2) return false;
  if (grad.sizes().slice(0, grad.dim() - 1) != input.sizes().slice(0, input.dim() - 1)) return false;
  if (grad.size(-1) != weight.size(0) || input.size(-1) != weight.size(1)) return false;
  if (wanted[0])
    call.ReturnLike(input);
  else
    call.ReturnUndefined();
  if (wanted[1])
    call.ReturnLike(weight);
  else
    call.ReturnUndefined();
  return wanted[2] ? call.Return({weight.size(0)}, grad.scalar_type()) : call.ReturnUndefined();
}

// (query, key, value, dropout, causal, mask?, scale?) -> (output, logsumexp)
bool Attention(ShapeCall& call) {
  const at::Tensor &query = call.Tensor(0), &key = call.Tensor(1), &value = call.Tensor(2);
  if (!IsAttention(query, key, value)) return false;
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  if (call.Has(5) && !at::is_expandable_to(call.Tensor(5).sizes(), {batch, heads, length, key.size(2)})) return false;
  const at::Tensor by_length = query.transpose(1, 2);
  const std::vector<int64_t> strides = by_length.is_non_overlapping_and_dense()
                                           ? by_length.strides().vec()
                                           : at::infer_dense_strides(by_length.sizes(), by_length.strides());
  call.Return(query.sizes(), {strides[0], strides[2], strides[1], strides[3]}, query.scalar_type());
  return call.Return({batch, heads, length}, {length * heads, 1, heads}, at::toOpMathType(query.scalar_type()));
}

// (grad, query, key, value, ...) -> gradients of query, key and value
bool AttentionBackward(ShapeCall& call) {
  const at::Tensor &query = call.Tensor(1), &key = call.Tensor(2), &value = call.Tensor(3);
  if (!IsAttention(query, key, value) || call.Tensor(0).sizes() != query.sizes()) return false;
  return ReturnOfHeads(call, query) && ReturnOfHeads(call, key) && ReturnOfHeads(call, value);
}

// (query, key, value, bias?, form, keeps sums, causal, scale?, ..., seed?, offset?) -> (output, logarithms of sums,
// draw)
bool AttentionOfCuda(ShapeCall& call) {
  const at::Tensor& query = call.Tensor(0);
  if (!IsAttention(query, call.Tensor(1), call.Tensor(2)) || call.Has(3)) return false;
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  const auto form = static_cast<AttentionForm>(call.Int(4));
  if (form == AttentionForm::kEfficient) {
    constexpr int64_t kRound = 32;
    const int64_t sums = call.Bool(5) ? (length + kRound - 1) / kRound * kRound : 0;
    ReturnOfHeads(call, query);
    call.Return({batch, heads, sums}, at::kFloat);
    return call.Has(9) ? call.Return({2}, at::kLong) : call.ReturnUndefined();
  }
  ReturnInOrder(call, query);
  form == AttentionForm::kCudnn ? call.Return({batch, heads, length, 1}, at::kFloat)
                                : call.Return({batch, heads, length}, at::kFloat);
  return call.ReturnUndefined();
}

// (grad, query, key, value, bias?, out, sums, draw?, form, ...) -> gradients of query, key, value and bias
bool AttentionOfCudaBackward(ShapeCall& call) {
  if (!IsAttention(call.Tensor(1), call.Tensor(2), call.Tensor(3)) || call.Has(4)) return false;
  for (int arg = 1; arg <= 3; ++arg) {
    static_cast<AttentionForm>(call.Int(8)) == AttentionForm::kEfficient ? ReturnOfHeads(call, call.Tensor(arg))
                                                                         : ReturnInOrder(call, call.Tensor(arg));
  }
  return call.ReturnUndefined();
}

}  // namespace torch_lazy::device::shapes
