// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace torch_lazy::torch_compat {

// Whether PyTorch does as Note [Mutable access] in storage_hook.h says: tried on a storage.
bool HookIsAsked();

}  // namespace torch_lazy::torch_compat
