// SPDX-License-Identifier: Apache-2.0
// Attention: ATen runs it.
#include "device/eager_overrides/our_arguments.h"
#include "device/eager_overrides/runners.h"
#include "device/rows/rows.h"
#include "device/shapes/products.h"

namespace torch_lazy::device {
namespace {

constexpr lazy::Row kAttentionRows[] = {
    {.name = "aten::_scaled_dot_product_*", .flags = kTakesAllValues},
    // The CPU's kernels refuse dropout.
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu", .flags = kDrawsNothing, .shape = shapes::Attention},
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     .flags = kDrawsNothing,
     .shape = shapes::AttentionBackward},
    {.name = "torch_lazy::attention",
     .flags = kTakesSeed,
     .shape = shapes::AttentionOfCuda,
     .runner = RunAttention,
     .check = CheckAttention},
    {.name = "torch_lazy::attention_backward",
     .flags = kTakesSeed,
     .shape = shapes::AttentionOfCudaBackward,
     .runner = RunAttentionBackward,
     .check = CheckAttentionBackward},
};

}  // namespace

Rows AttentionRows() { return kAttentionRows; }

}  // namespace torch_lazy::device
