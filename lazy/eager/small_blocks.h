// SPDX-License-Identifier: Apache-2.0
// Memory for small results on the host.
//
// Malloc cuts each aligned block out of a larger one, which costs more than many a kernel that fills it, and so does a
// pool of all threads. So a thread keeps some blocks that it has freed. All of them are malloc's: anybody may free one.
#pragma once

#include <cstddef>

#include <c10/core/Allocator.h>

namespace torch_lazy::lazy {

constexpr size_t kMostSmallBytes = 4096;

// Uninitialised, for 1 to kMostSmallBytes bytes. The pointer is its own context.
c10::DataPtr SmallBlock(size_t size_bytes);

bool IsSmallBlock(const c10::DataPtr& pointer);

}  // namespace torch_lazy::lazy
