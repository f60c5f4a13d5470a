// SPDX-License-Identifier: Apache-2.0
// Attention: ATen runs it, but for a few queries on a GPU, where ATen's kernels have tiles of 64.
#include <cmath>

#include "device/eager_overrides/fused_attention.h"
#include "device/eager_overrides/our_arguments.h"
#include "device/eager_overrides/runners.h"
#include "device/rows/rows.h"
#include "device/shapes/products.h"
#include "ir/decompose/softmax.h"
#include "lazy/lower/lowering.h"

namespace torch_lazy::device {
namespace {

using ir::DType;
using ir::Value;

constexpr int64_t kMostQueries = 8;     // of a head of keys, each of which reads all of them
constexpr int64_t kMostWidth = 256;     // of a head
constexpr int64_t kMostKeys = 1 << 14;  // one block reads them: more are better shared

// The logarithm of the sum of exponentials of each query's scores, [batch, heads, rows]. Hardly anybody asks.
Value SumsOf(ir::Builder& b, Value query, Value keys, Value bias) {
  const ir::Dims rows = b.dims(query), of_keys = b.dims(keys);
  const ir::Dims all = {rows[0], rows[1], rows[2], of_keys[2], rows[3]};
  const ir::Extent one = ir::Extent::Constant(1);
  const Value left = b.Expand(b.Reshape(query, {rows[0], rows[1], rows[2], one, rows[3]}), all);
  const Value right = b.Reshape(b.Cast(keys, DType::kF32), {rows[0], rows[1], one, of_keys[2], rows[3]});
  Value scores = b.Sum(b.Mul(left, b.Expand(right, all)), {4}, /*keepdim=*/false);
  if (bias != ir::kNoValue) scores = b.Add(scores, b.Cast(bias, DType::kF32));
  return ir::decompose::LogSumExp(b, scores, {3}, /*keepdim=*/false);
}

// attention(query, key, value, bias?, form, keeps_sums, is_causal, scale?, dropout, seed?, offset?). What autograd
// keeps for a backward pass is ATen's, so that both passes fit each other.
bool AttendByFew(lazy::Lowering& call) {
  const bool keeps_sums = call.Bool(5), is_causal = call.Bool(6), draws = !call.IsNone(9);
  if (!call.IsForCuda() || keeps_sums || is_causal || draws) return false;
  ir::Builder& b = call.b();
  const Value query = call.Tensor(0), keys = call.Tensor(1), values = call.Tensor(2);
  const ir::Ints sizes = call.Sizes(0), sizes_of_keys = call.Sizes(1);
  if (b.rank(query) != 4 || b.rank(keys) != 4 || !ir::IsHalf(b.dtype(keys)) || b.dtype(query) != b.dtype(keys) ||
      b.type(keys) != b.type(values))
    return false;
  const ir::Dims rows = b.dims(query), of_keys = b.dims(keys);
  const int64_t heads = sizes_of_keys[1], num_keys = sizes_of_keys[2];
  if (heads == 0 || sizes[1] % heads != 0) return false;
  const int64_t queries = sizes[1] / heads * sizes[2];  // heads that share keys are one head with more queries
  const bool is_of_few = queries <= kMostQueries && sizes[3] <= kMostWidth && num_keys <= kMostKeys;
  if (!is_of_few || rows[0] != of_keys[0] || rows[3] != of_keys[3]) return false;
  const auto shared = [&](Value of_queries, const ir::Extent& last) {
    return b.Reshape(of_queries, {rows[0], of_keys[1], call.ExtentOf(queries), last});
  };
  Value bias = ir::kNoValue;
  if (!call.IsNone(3)) {
    bias = call.Tensor(3);
    if (!ir::IsFloat(b.dtype(bias)) || b.rank(bias) != 4) return false;
    bias = shared(b.BroadcastTo(bias, {rows[0], rows[1], rows[2], of_keys[2]}), of_keys[2]);
  }
  const Value scale =
      call.IsNone(7) ? b.Const(DType::kF32, 1 / std::sqrt(static_cast<double>(sizes[3]))) : call.Number(7, DType::kF32);
  const Value wide = b.Cast(query, DType::kF32), scaled = shared(b.Mul(wide, b.FullLike(scale, wide)), rows[3]);
  call.Return(0, b.Reshape(b.Attend(scaled, keys, values, bias), rows));
  const ir::Dims& sums = call.Result(1).dims;
  const bool is_empty = static_cast<AttentionForm>(call.Int(4)) == AttentionForm::kEfficient;
  call.Return(1, is_empty ? b.Full(b.Const(DType::kF32, 0.0), sums) : b.Reshape(SumsOf(b, scaled, keys, bias), sums));
  return true;
}

constexpr lazy::Row kAttentionRows[] = {
    {.name = "aten::_scaled_dot_product_*", .flags = kTakesAllValues},
    // The CPU's kernels refuse dropout.
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu", .flags = kDrawsNothing, .shape = shapes::Attention},
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     .flags = kDrawsNothing,
     .shape = shapes::AttentionBackward},
    {.name = "torch_lazy::attention",
     .lower = AttendByFew,
     .flags = kTakesSeed | kPreparesByThread,
     .shape = shapes::AttentionOfCuda,
     .runner = RunAttention,
     .check = CheckAttention},
    {.name = "torch_lazy::attention_backward",
     .flags = kTakesSeed | kPreparesByThread,
     .shape = shapes::AttentionOfCudaBackward,
     .runner = RunAttentionBackward,
     .check = CheckAttentionBackward},
};

}  // namespace

Rows AttentionRows() { return kAttentionRows; }

}  // namespace torch_lazy::device
