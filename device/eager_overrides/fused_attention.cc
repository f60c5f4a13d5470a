// SPDX-License-Identifier: Apache-2.0
// ATen's operators of attention also return integers, and seeds that may lie on the host. So we record operators of our
// own, of tensors alone; their runners call ATen's on CUDA.
#include "device/eager_overrides/fused_attention.h"

#include <array>

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "device/eager_overrides/boxed.h"
#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "device/eager_overrides/shared_heads.h"
#include "lazy/cuda/philox.h"
#include "lazy/eager/on_host.h"
#include "lazy/ops/op.h"
#include "lazy/trace/replay_recorder.h"

namespace torch_lazy::device {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Output =
    std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // its logarithms of sums; the draw, where a graph keeps it
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;  // of query, key, value and bias
using OptionalNumber = std::optional<at::Scalar>;

at::Tensor OrUndefined(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

// ---- runners, on CUDA ----

// The seed and the offset as one tensor. ATen leaves them on the host, or, in a graph, in two tensors that each replay
// fills.
at::Tensor DrawTensor(const at::Tensor& seed, const at::Tensor& offset, const at::Tensor& like) {
  return at::stack({seed, offset}).to(like.device());
}

Output EfficientWithDropout(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const OptionalTensor& bias, bool keeps_sums, bool is_causal, std::optional<double> scale,
                            double dropout, lazy::PhiloxDraw draw) {
  const lazy::DrawScope scope(draw);
  const auto [out, sums, seed, offset] =
      at::_scaled_dot_product_efficient_attention(query, key, value, bias, keeps_sums, dropout, is_causal, scale);
  return {out, sums, DrawTensor(seed, offset, query)};
}

Output Attention(at::Tensor query, at::Tensor key, at::Tensor value, OptionalTensor bias, int64_t form, bool keeps_sums,
                 bool is_causal, std::optional<double> scale, double dropout, OptionalNumber seed,
                 OptionalNumber offset) {
  const auto first_two = [](const auto& results) {
    return Output(std::get<0>(results), std::get<1>(results), at::Tensor());
  };
  switch (static_cast<AttentionForm>(form)) {
    case AttentionForm::kFlash:
      return first_two(at::_scaled_dot_product_flash_attention(query, key, value, /*dropout_p=*/0, is_causal,
                                                               /*return_debug_mask=*/false, scale));
    case AttentionForm::kCudnn:
      return first_two(at::_scaled_dot_product_cudnn_attention(query, key, value, bias, /*compute_log_sumexp=*/true,
                                                               /*dropout_p=*/0, is_causal,
                                                               /*return_debug_mask=*/false, scale));
    case AttentionForm::kEfficient:
      if (seed.has_value()) {
        return EfficientWithDropout(query, key, value, bias, keeps_sums, is_causal, scale, dropout,
                                    {seed->toLong(), offset->toLong()});
      }
      return first_two(at::_scaled_dot_product_efficient_attention(query, key, value, bias, keeps_sums, /*dropout_p=*/0,
                                                                   is_causal, scale));
  }
  TORCH_INTERNAL_ASSERT(false, "lazy: no form ", form, " of attention");
}

// The same values in another storage. Where the three lie in one, the memory-efficient form's gradients would, too.
at::Tensor Apart(const at::Tensor& tensor) {
  return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), tensor.options());
}

Gradients AttentionBackward(at::Tensor grad, at::Tensor query, at::Tensor key, at::Tensor value, OptionalTensor bias,
                            at::Tensor out, at::Tensor sums, OptionalTensor draw, int64_t form,
                            std::array<bool, 4> wanted, bool is_causal, std::optional<double> scale, double dropout,
                            OptionalNumber seed, OptionalNumber offset) {
  const auto with_none = [](std::tuple<at::Tensor, at::Tensor, at::Tensor> three) {
    return std::tuple_cat(std::move(three), std::tuple(at::Tensor()));
  };
  const at::Tensor none;
  switch (static_cast<AttentionForm>(form)) {
    case AttentionForm::kFlash: {
      const at::Tensor no_seed = at::empty({2}, query.options().dtype(at::kUInt64));
      return with_none(at::_scaled_dot_product_flash_attention_backward(grad, query, key, value, out, sums, none, none,
                                                                        query.size(2), key.size(2), /*dropout_p=*/0,
                                                                        is_causal, no_seed, no_seed, scale));
    }
    case AttentionForm::kCudnn: {
      const at::Tensor no_seed = at::empty({1}, query.options().dtype(at::kLong));
      return with_none(at::_scaled_dot_product_cudnn_attention_backward(grad, query, key, value, out, sums, no_seed,
                                                                        no_seed, OrUndefined(bias), none, none,
                                                                        query.size(2), key.size(2),
                                                                        /*dropout_p=*/0, is_causal, scale));
    }
    case AttentionForm::kEfficient: {
      // In a graph each replay has another draw; elsewhere ATen reads it on the host.
      const bool is_captured = lazy::captured_draws != nullptr && draw.has_value();
      const auto drawn = [&](const OptionalNumber& number, int at) {
        return is_captured ? draw->select(0, at) : at::scalar_tensor(number.value_or(0), at::kLong);
      };
      return at::_scaled_dot_product_efficient_attention_backward(grad, Apart(query), key, value, OrUndefined(bias),
                                                                  out, sums, drawn(seed, 0), drawn(offset, 1), dropout,
                                                                  wanted, is_causal, scale);
    }
  }
  TORCH_INTERNAL_ASSERT(false, "lazy: no form ", form, " of attention");
}

// ---- what is recorded ----

Output Record(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& bias,
              AttentionForm form, bool keeps_sums, bool is_causal, std::optional<double> scale, double dropout = 0,
              OptionalNumber seed = {}, OptionalNumber offset = {}) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("torch_lazy::attention", "")
          .typed<Output(const at::Tensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&, int64_t, bool,
                        bool, std::optional<double>, double, const OptionalNumber&, const OptionalNumber&)>();
  return op.call(query, key, value, bias, static_cast<int64_t>(form), keeps_sums, is_causal, scale, dropout, seed,
                 offset);
}

Gradients RecordBackward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                         const at::Tensor& value, const at::Tensor& bias, const at::Tensor& out, const at::Tensor& sums,
                         const OptionalTensor& draw, AttentionForm form, std::array<bool, 4> wanted, bool is_causal,
                         std::optional<double> scale, double dropout = 0, OptionalNumber seed = {},
                         OptionalNumber offset = {}) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("torch_lazy::attention_backward", "")
          .typed<Gradients(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const OptionalTensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&, int64_t,
                           std::array<bool, 4>, bool, std::optional<double>, double, const OptionalNumber&,
                           const OptionalNumber&)>();
  return op.call(grad, query, key, value, bias.defined() ? OptionalTensor(bias) : std::nullopt, out, sums, draw,
                 static_cast<int64_t>(form), wanted, is_causal, scale, dropout, seed, offset);
}

// ---- ATen's operators ----

// (output, sums, cumulative lengths of queries and of keys, greatest lengths, seed, offset, mask)
using Overrideable = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                                at::Tensor, at::Tensor>;

Overrideable Fused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& bias,
                   double dropout, bool is_causal, bool returns_mask, std::optional<double> scale) {
  if (lazy::IsOnHost()) {
    return at::native::_scaled_dot_product_fused_attention_overrideable(query, key, value, bias, dropout, is_causal,
                                                                        returns_mask, scale);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(dropout == 0 && !bias.has_value() && !returns_mask,
                              "lazy: fused attention takes no mask and no dropout; call scaled_dot_product_attention");
  const AttentionForm form =
      TakesCudnn(query, key, value, is_causal, scale) ? AttentionForm::kCudnn : AttentionForm::kFlash;
  // Both forms return the sums in any case; whether autograd keeps them tells if a kernel of ours may attend.
  const bool keeps_sums =
      at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
  const auto [out, sums, draw] = Record(query, key, value, bias, form, keeps_sums, is_causal, scale);
  return {out,          sums,         at::Tensor(), at::Tensor(), query.sym_size(2), key.sym_size(2),
          at::Tensor(), at::Tensor(), at::Tensor()};
}

Gradients FusedBackward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const at::Tensor& bias, std::array<bool, 4> wanted, const at::Tensor& out,
                        const at::Tensor& sums, const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt, double,
                        bool is_causal, const at::Tensor&, const at::Tensor&, std::optional<double> scale) {
  const AttentionForm form = sums.dim() == 4 ? AttentionForm::kCudnn : AttentionForm::kFlash;
  return RecordBackward(grad, query, key, value, bias, out, sums, /*draw=*/std::nullopt, form, wanted, is_causal,
                        scale);
}

// What ATen hands from forward to backward as the seed: on the host the seed and the offset of a draw of ours, which
// eager's are too where nothing is captured; the draw as a tensor goes as the offset.
at::Tensor SeedOf(lazy::PhiloxDraw draw) { return at::tensor({draw.seed, draw.offset}, at::kLong); }

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> Efficient(const at::Tensor& query, const at::Tensor& key,
                                                                     const at::Tensor& value,
                                                                     const OptionalTensor& bias, bool keeps_sums,
                                                                     double dropout, bool is_causal,
                                                                     std::optional<double> scale) {
  if (lazy::IsOnHost()) {
    return CallBoxed<at::_ops::_scaled_dot_product_efficient_attention>(query, key, value, bias, keeps_sums, dropout,
                                                                        is_causal, scale);
  }
  if (dropout == 0) {
    if (!keeps_sums && !is_causal) {
      if (const std::optional<SharedHeads> shared = BeforeCopies(query, key, value, bias)) {
        const auto [out, sums, none] = Record(shared->query, shared->key, shared->value, shared->bias,
                                              AttentionForm::kEfficient, keeps_sums, is_causal, scale);
        const at::Tensor no_seed = at::empty({}, at::kLong);
        return {out.view(query.sizes()), sums.view({query.size(0), query.size(1), 0}), no_seed, no_seed};
      }
    }
    const auto [out, sums, none] =
        Record(query, key, value, bias, AttentionForm::kEfficient, keeps_sums, is_causal, scale);
    const at::Tensor no_seed = at::empty({}, at::kLong);
    return {out, sums, no_seed, no_seed};
  }
  // As many as `_efficient_attention_forward` takes: one for each pair of positions.
  const lazy::PhiloxDraw draw =
      lazy::TakeRecordedDraw(static_cast<uint64_t>(query.size(0) * query.size(1) * query.size(2) * key.size(2)));
  const auto [out, sums, kept] = Record(query, key, value, bias, AttentionForm::kEfficient, keeps_sums, is_causal,
                                        scale, dropout, draw.seed, draw.offset);
  return {out, sums, SeedOf(draw), kept};
}

Gradients EfficientBackward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const at::Tensor& bias, const at::Tensor& out,
                            const at::Tensor& sums, const at::Tensor& seed, const at::Tensor& offset, double dropout,
                            std::array<bool, 4> wanted, bool is_causal, std::optional<double> scale) {
  if (lazy::IsOnHost()) {
    return CallBoxed<at::_ops::_scaled_dot_product_efficient_attention_backward>(
        grad, query, key, value, bias, out, sums, seed, offset, dropout, wanted, is_causal, scale);
  }
  if (dropout == 0) {
    return RecordBackward(grad, query, key, value, bias, out, sums, /*draw=*/std::nullopt, AttentionForm::kEfficient,
                          wanted, is_causal, scale);
  }
  TORCH_CHECK(seed.is_cpu() && seed.numel() == 2,
              "lazy: the seed of attention's dropout is not one of the device's own");
  const int64_t* const draw = seed.const_data_ptr<int64_t>();
  return RecordBackward(grad, query, key, value, bias, out, sums, offset, AttentionForm::kEfficient, wanted, is_causal,
                        scale, dropout, draw[0], draw[1]);
}

}  // namespace

void RunAttention(torch::jit::Stack* stack) { Runner<Attention>(stack); }
void RunAttentionBackward(torch::jit::Stack* stack) { Runner<AttentionBackward>(stack); }

void RegisterFusedAttention(torch::Library& aten) {
  aten.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(Fused));
  aten.impl("_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(FusedBackward));
  aten.impl("_scaled_dot_product_efficient_attention", TORCH_FN(Efficient));
  aten.impl("_scaled_dot_product_efficient_attention_backward", TORCH_FN(EfficientBackward));
}

}  // namespace torch_lazy::device
