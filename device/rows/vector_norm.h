// SPDX-License-Identifier: Apache-2.0
// The norm of a vector, alone and in lists.
#pragma once

#include <optional>

#include "ir/decompose/expression.h"

namespace torch_lazy::device {

// Nothing for an order without a formula of its own.
std::optional<ir::Value> Norm(const ir::decompose::Expression& x, double order, const ir::Ints& dims, bool keepdim);

}  // namespace torch_lazy::device
