// SPDX-License-Identifier: Apache-2.0
// What a kernel's text is written for.
#pragma once

#include <cstdint>

namespace torch_lazy::codegen {

enum class Target : uint8_t { kCpu, kCuda };

}  // namespace torch_lazy::codegen
