// SPDX-License-Identifier: Apache-2.0
// A storage as a trace knows it, numbered by first use.
#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

namespace torch_lazy::lazy {

class LazyStorageImpl;

struct TraceSlot {
  c10::Storage content;              // null until the trace writes it, or if nothing was ever stored
  LazyStorageImpl* owner = nullptr;  // null once the storage is dead
  size_t size_bytes = 0;
  bool external = false;  // it was there before the trace touched it
  bool written = false;
  uint32_t first_call = 0;                               // the call that first touched it
  uint32_t calls_at_death = UINT32_MAX;                  // calls recorded when the storage died
  bool older = false;                                    // it held something before the trace touched it
  bool inherits = false;                                 // content comes at the end of a run: Note [Runs ahead]
  uint64_t stamp = 0;                                    // the storage's, when the trace first touched it; 0: unknown
  uint64_t next_stamp = 0;                               // what it gets where the trace has written it; 0: any
  at::ScalarType unwritten = at::ScalarType::Undefined;  // the storage's
  uint64_t serial = 0;                                   // likewise; 0: the trace has made it, and it is gone
};

}  // namespace torch_lazy::lazy
