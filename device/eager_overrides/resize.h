// SPDX-License-Identifier: Apache-2.0
// Storages that change their size.
#pragma once

#include <c10/core/StorageImpl.h>

namespace torch_lazy::device {

// Makes the storage this large, smaller or larger; the bytes that fit stay. Pending work on it is run first.
void ResizeStorage(c10::StorageImpl* storage, size_t size_bytes);

}  // namespace torch_lazy::device
