// SPDX-License-Identifier: Apache-2.0
// What an op costs per element, in vector code on one core.
#pragma once

#include "ir/graph.h"

namespace torch_lazy::codegen {

double NanosecondsOf(const ir::Node& node);

// More than to read its result from cache.
bool IsCostly(const ir::Node& node);

// More than to keep its result in memory for another kernel.
bool IsDear(const ir::Node& node);

}  // namespace torch_lazy::codegen
