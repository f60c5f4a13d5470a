// SPDX-License-Identifier: Apache-2.0
// Operators that are not lowered, and that eager may refuse for what is no tensor: a number, or a setting.
#include "device/rows/rows.h"

namespace torch_lazy::device {
namespace {

constexpr lazy::Row kRows[] = {
    {"aten::_cdist_forward", nullptr, lazy::kRefusesNumbers},
    {"aten::histc", nullptr, lazy::kRefusesNumbers},
    {"aten::put_", nullptr, lazy::kImmediate},  // where only deterministic algorithms are wanted
    {"aten::renorm", nullptr, lazy::kRefusesNumbers},
};

}  // namespace

Rows CheckedRows() { return kRows; }

}  // namespace torch_lazy::device
