// SPDX-License-Identifier: Apache-2.0
// Where somebody waits for values.
#pragma once

#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

// Runs what is pending on the storage and returns its content (allocated if there was none): the sync point for one
// storage. `writes`: the caller is going to write, so pending readers are run first as well.
c10::Storage Sync(LazyStorageImpl* storage, const char* reason, bool writes = false);

// An eager tensor on the same memory: pending work is run, nothing is copied.
at::Tensor SyncToAlias(const at::Tensor& tensor, const char* reason, bool writes = false);

// The same, because the host waits for the value: runs all that the thread has recorded, so that a loop that waits once
// a step is cut at the same place of every step, whether the value was pending or not.
at::Tensor SyncForHost(const at::Tensor& tensor, const char* reason);

// The same for who only reads it, on the stream of its lane (StreamOfLane), and gives it to nobody else. What the host
// knows is not waited for, and what stands behind a small value in a GPU's queue is not either: Note [Known values],
// Note [Early reads], Note [Lanes].
at::Tensor SyncToRead(const at::Tensor& tensor, const char* reason);

// Runs everything pending on all threads' traces.
void SyncAll(const char* reason);

}  // namespace torch_lazy::lazy
