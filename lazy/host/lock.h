// SPDX-License-Identifier: Apache-2.0
// The one lock around traces and storages.
//
// Held for the length of one recording step, never while an entry runs or a compiler is waited for. Recursive, since
// dropping the last reference to a storage inside a locked region ends in that storage's destructor.
#pragma once

#include <mutex>

namespace torch_lazy::lazy {

std::recursive_mutex& DeviceLock();
using Locked = std::lock_guard<std::recursive_mutex>;

}  // namespace torch_lazy::lazy
