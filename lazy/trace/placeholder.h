// SPDX-License-Identifier: Apache-2.0
// What a lazy storage shows in the place of its address.
//
// A placeholder is an address that no two living storages share, and that no process can map, so that a reader who
// takes it for memory faults instead of reading garbage. PyTorch asks for an address to write through (`data_ptr()`,
// DLPack, `untyped_storage()`) by way of "mutable" access, and to that a storage answers with memory: pending work on
// it is run and the address of its content is given out. Storage and content are one memory from then on. How a storage
// comes to answer is Note [Mutable access] in torch_compat/storage_hook.h.
#pragma once

#include <c10/core/StorageImpl.h>

namespace torch_lazy::lazy {

void* PlaceholderOf(const c10::StorageImpl* storage);

// True for the address of any placeholder.
bool IsPlaceholder(const void* address);

}  // namespace torch_lazy::lazy
