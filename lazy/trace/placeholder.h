// SPDX-License-Identifier: Apache-2.0
// What a lazy storage answers when asked for its address.
//
// A lazy storage shows a placeholder in the place of its address: one that no two living storages share, and that no
// process can map, so that a reader who takes it for memory faults instead of reading garbage. PyTorch asks for an
// address to write through (`data_ptr()`, DLPack, `untyped_storage()`) by way of "mutable" access, and to that we
// answer with memory: pending work on the storage is run and the address of its content is given out.
//
// Note [Mutable access]
// Nothing in a StorageImpl is virtual, but mutable access materialises a copy-on-write pointer: it lets the storage's
// allocator clone the bytes, that is, allocate() and then copy_data(), and keeps the result. So the placeholder is a
// copy-on-write pointer, and each storage is its own allocator: allocate() answers with the address of the content, and
// there is nothing to copy. Storage and content are one memory from then on.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

namespace torch_lazy::lazy {

// The allocator that is a part of every lazy storage; see Note [Mutable access]. It waits for what is pending, so it is
// written above the traces, in cuts/address.cc.
class StorageAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) final;
  void copy_data(void* to, const void* from, size_t size_bytes) const final;
};

// The pointer that a storage is made with.
c10::DataPtr Placeholder(const c10::StorageImpl* storage, c10::Device device);

// Puts the placeholder back, so that the next access to the address runs what is pending by then. To be called whenever
// a write to the storage is recorded, and whenever its content moves. Cheap if the placeholder is there.
void ArmPlaceholder(c10::StorageImpl* storage);

// True while the storage shows its placeholder.
bool HasPlaceholder(c10::StorageImpl* storage);

// True for the address of any placeholder.
bool IsPlaceholder(const void* address);

// A mutable access has used up one of the placeholders' owners: they get it back.
void GiveBackAccess();

// The storage dies.
void ReleasePlaceholder(c10::StorageImpl* storage);

}  // namespace torch_lazy::lazy
