// SPDX-License-Identifier: Apache-2.0
// Convolutions, and what averages, resizes or pads images: ATen runs them.
#include "device/shapes/images.h"
#include "device/eager_overrides/runners.h"
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

// (input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
constexpr lazy::ConvolutionArguments kConvolution = {
    .image = 0, .weight = 1, .bias = 2, .stride = 3, .padding = 4, .dilation = 5, .transposed = 6, .groups = 8};

constexpr lazy::Row kImageRows[] = {
    {.name = "aten::convolution",
     .flags = kWhole | kTakesAllValues | kPreparesByThread,
     .shape = shapes::Convolution,
     .runner = RunConvolution,
     .convolution = &kConvolution},
    {.name = "aten::convolution_backward",
     .flags = kWhole | kTakesAllValues | kPreparesByThread,
     .shape = shapes::ConvolutionBackward},
    {.name = "aten::convolution_overrideable",
     .flags = kWhole | kTakesAllValues | kPreparesByThread,
     .runner = RunConvolution},
    {.name = "aten::convolution_backward_overrideable",
     .flags = kWhole | kTakesAllValues | kPreparesByThread,
     .runner = RunConvolutionBackward},
    {.name = "aten::im2col", .flags = kTakesAllValues},
    {.name = "aten::_adaptive_avg_pool*", .flags = kTakesAllValues},
    {.name = "aten::_adaptive_avg_pool2d", .shape = shapes::Resize},
    {.name = "aten::_adaptive_avg_pool2d_backward", .shape = shapes::PoolBackward},
    {.name = "aten::adaptive_avg_pool*", .flags = kTakesAllValues},
    {.name = "aten::avg_pool*", .flags = kTakesAllValues},
    {.name = "aten::avg_pool2d", .shape = shapes::AveragePool},
    {.name = "aten::avg_pool2d_backward", .shape = shapes::PoolBackward},
    {.name = "aten::avg_pool3d", .runner = RunAvgPool3d},
    {.name = "aten::avg_pool3d_backward", .runner = RunAvgPool3dBackward},
    {.name = "aten::grid_sampler_*", .flags = kTakesAllValues},
    {.name = "aten::reflection_pad*", .flags = kTakesAllValues},
    {.name = "aten::replication_pad*", .flags = kTakesAllValues},
    {.name = "aten::upsample_*", .flags = kTakesAllValues},
    {.name = "aten::upsample_bilinear2d", .shape = shapes::Resize},
    {.name = "aten::upsample_bilinear2d_backward", .shape = shapes::ResizeBackward},
    {.name = "aten::upsample_nearest2d", .shape = shapes::Resize},
    {.name = "aten::upsample_nearest2d_backward", .shape = shapes::ResizeBackward},
};

}  // namespace

Rows ImageRows() { return kImageRows; }

}  // namespace torch_lazy::device
