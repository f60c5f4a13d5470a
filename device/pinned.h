// SPDX-License-Identifier: Apache-2.0
// Host memory for fast copies to the device.
#pragma once

#include <c10/core/Allocator.h>

namespace torch_lazy::device {

// Where CUDA works, memory that its driver has pinned. Else ordinary memory, which is as near to the device as it gets,
// but known as pinned, as programs expect of what they have pinned.
c10::Allocator* PinnedAllocator();

// Whether `pointer` lies in memory of that allocator.
bool IsPinned(const void* pointer);

}  // namespace torch_lazy::device
