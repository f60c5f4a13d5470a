// SPDX-License-Identifier: Apache-2.0
// Operators that are not lowered, and that eager may refuse for what is no tensor: a number, or a setting.
#include "device/eager_overrides/runners.h"
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

constexpr lazy::Row kCheckedRows[] = {
    {.name = "aten::_cdist_forward", .flags = kRefusesNumbers},
    {.name = "aten::histc", .flags = kRefusesNumbers, .runner = RunHistc},
    {.name = "aten::renorm", .flags = kRefusesNumbers},
};

}  // namespace

Rows CheckedRows() { return kCheckedRows; }

}  // namespace torch_lazy::device
