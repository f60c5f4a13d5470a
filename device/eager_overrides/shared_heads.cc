// SPDX-License-Identifier: Apache-2.0
#include "device/eager_overrides/shared_heads.h"

#include "lazy/trace/pending_copy.h"

namespace torch_lazy::device {
namespace {

constexpr int64_t kRank = 4;  // batch, heads, length, width

// (batch, shared heads, length, width) as (batch * shared heads, 1, length, width): what each head of `copies` was
// copied from, the same number of times. Undefined if it was not.
at::Tensor SourceOf(const at::Tensor& copies) {
  const at::Tensor source = lazy::SourceOfPendingCopy(copies);  // with the times in the middle
  if (!source.defined() || source.dim() != kRank + 1 || !copies.is_contiguous() || copies.storage_offset() != 0)
    return {};
  const int64_t batch = source.size(0), heads = source.size(1), times = source.size(2);
  const bool is_repeated = times > 1 && source.stride(2) == 0;
  const bool is_like_copies = batch == copies.size(0) && heads * times == copies.size(1) &&
                              source.size(3) == copies.size(2) && source.size(4) == copies.size(3);
  const bool merges = batch == 1 || source.stride(0) == heads * source.stride(1);
  if (!is_repeated || !is_like_copies || !merges || source.stride(4) != 1) return {};
  return source.as_strided({batch * heads, 1, source.size(3), source.size(4)},
                           {source.stride(1), source.stride(1), source.stride(3), 1}, source.storage_offset());
}

bool IsSame(const at::Tensor& tensor, int64_t dim) { return tensor.size(dim) == 1 || tensor.stride(dim) == 0; }

}  // namespace

std::optional<SharedHeads> BeforeCopies(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                        const std::optional<at::Tensor>& bias) {
  if (query.dim() != kRank || query.size(2) != 1 || !query.is_contiguous()) return std::nullopt;
  const bool has_bias = bias.has_value() && bias->defined();
  if (has_bias && (bias->dim() != kRank || !IsSame(*bias, 0) || !IsSame(*bias, 1))) return std::nullopt;
  SharedHeads shared{.query = {}, .key = SourceOf(key), .value = {}, .bias = bias};
  if (shared.key.defined()) shared.value = SourceOf(value);
  if (!shared.value.defined() || shared.value.size(0) != shared.key.size(0)) return std::nullopt;
  const int64_t heads = shared.key.size(0), rows = query.size(0) * query.size(1) / heads;
  shared.query = query.view({heads, 1, rows, query.size(3)});
  if (has_bias) shared.bias = bias->select(0, 0).select(0, 0).expand({heads, 1, rows, bias->size(3)});
  return shared;
}

}  // namespace torch_lazy::device
