// SPDX-License-Identifier: Apache-2.0
// The machines this library knows.
#pragma once

#include "backends/backend.h"

namespace torch_lazy::backends {

// The backend in use; leaked on purpose.
Backend& Get();

}  // namespace torch_lazy::backends
