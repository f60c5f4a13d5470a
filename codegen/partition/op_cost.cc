// SPDX-License-Identifier: Apache-2.0
#include "codegen/partition/op_cost.h"

namespace torch_lazy::codegen {

double NanosecondsOf(const ir::Node& node) { return ir::Info(node.op).nanoseconds; }

bool IsCostly(const ir::Node& node) { return NanosecondsOf(node) > 0.1; }

bool IsDear(const ir::Node& node) { return NanosecondsOf(node) > 1; }

}  // namespace torch_lazy::codegen
