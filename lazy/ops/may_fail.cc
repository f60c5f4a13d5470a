// SPDX-License-Identifier: Apache-2.0
#include "lazy/ops/may_fail.h"

#include <algorithm>
#include <string_view>

#include <ATen/core/enum_tag.h>

#include "lazy/ops/op.h"

namespace torch_lazy::lazy {
namespace {

// Pointwise, but integers may not be divided by 0, raised to negative powers, or be too large for the dtype.
constexpr std::string_view kRefusesIntegers[] = {"div",         "divide", "floor_divide", "fmod",
                                                 "masked_fill", "pow",    "remainder"};

// Beginnings of names, each for its forms (in place, backward, ...).
constexpr std::string_view kTakesAllValues[] = {
    "_adaptive_avg_pool",
    "_conj_physical",
    "_copy_from",
    "_foreach_",
    "_fused_ada",
    "_fused_sgd",
    "_log_softmax",
    "_native_batch_norm",
    "_scaled_dot_product_",
    "_softmax",
    "_thnn_fused_",
    "_to_copy",
    "adaptive_avg_pool",
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "avg_pool",
    "baddbmm",
    "bmm",
    "cat",
    "clone",
    "constant_pad_nd",
    "convolution",
    "copy",
    "cum",
    "diagonal",
    "dot",
    "embedding_dense_backward",
    "fill",
    "flip",
    "full",
    "glu",
    "grid_sampler",
    "im2col",
    "linear",
    "log_softmax",
    "max_pool2d_with_indices",
    "mkldnn_rnn_layer",
    "mm",
    "mv",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "nll_loss2d_backward",
    "nll_loss_backward",
    "ones",
    "reflection_pad",
    "replication_pad",
    "roll",
    "select_backward",
    "slice_backward",
    "softmax",
    "sort",
    "split",
    "stack",
    "topk",
    "tril",
    "triu",
    "unfold_backward",
    "upsample_",
    "zero",
};

// "add" of "aten::add_".
std::string_view FunctionalName(const c10::OperatorHandle& handle) {
  std::string_view name = handle.operator_name().name;
  name.remove_prefix(std::min(name.size(), std::string_view("aten::").size()));
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

bool IsOneOf(std::string_view name, c10::ArrayRef<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool MayFail(const c10::OperatorHandle& handle) {
  constexpr std::string_view kList = "_foreach_";
  const std::string_view name = FunctionalName(handle);
  if (!handle.operator_name().name.starts_with("aten::")) return !IsOurs(handle);
  if (IsOneOf(name.starts_with(kList) ? name.substr(kList.size()) : name, kRefusesIntegers)) return true;
  if (handle.hasTag(at::Tag::pointwise) || handle.hasTag(at::Tag::reduction)) return false;
  return std::none_of(std::begin(kTakesAllValues), std::end(kTakesAllValues),
                      [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace torch_lazy::lazy
