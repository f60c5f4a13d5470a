// SPDX-License-Identifier: Apache-2.0
// What sorts, wholly or in part: ATen runs it.
#include "device/rows/rows.h"
#include "device/shapes/indexing.h"
#include "device/shapes/reductions.h"

namespace torch_lazy::device {
namespace {

constexpr lazy::Row kOrderRows[] = {
    {.name = "aten::sort.stable", .flags = kTakesAllValues, .shape = shapes::Sort},
    {.name = "aten::topk", .flags = kTakesAllValues, .shape = shapes::TopK},
    {.name = "aten::kthvalue", .flags = kWhole, .shape = shapes::KthValue},
    {.name = "aten::median", .shape = shapes::Extreme},
    {.name = "aten::median.dim", .flags = kWhole, .shape = shapes::ExtremeOverDim},
    {.name = "aten::nanmedian.dim", .flags = kWhole, .shape = shapes::ExtremeOverDim},
    {.name = "aten::mode.values", .flags = kWhole},  // its composite form asks for devices by name
    {.name = "aten::_unique", .flags = kImmediate},
};

}  // namespace

Rows OrderRows() { return kOrderRows; }

}  // namespace torch_lazy::device
