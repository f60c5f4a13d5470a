// SPDX-License-Identifier: Apache-2.0
// Small values that the host reads before a GPU has done all that it was asked to do.
//
// Note [Early reads]
// A loop that reads its loss after the optimizer's step waits for a value that the forward pass has made. ATen would
// read it behind the backward pass and the update, since these stand in the queue before the read, and the GPU would
// then be idle until the next step is recorded. So where a part of a step (Note [Early cuts]) ends, its end is marked
// in the queue. A small value of the part is read by another stream as soon as the GPU has come to that mark. The host
// is one step ahead then, as in a loop that reads nothing.
//
// What is asked for may follow from such a value: `if torch.isnan(loss)` behind the backward pass. A truth value that a
// few pending calls make of early values, by comparisons that are exact on each device, is computed on the host. The
// calls stay recorded, and are cut where they would be.
//
// The value's stamp says which part has made it. What has been written since has another stamp, and what others may
// write has none. A value that lies elsewhere by now, since a CUDA graph needed its place, was copied there behind the
// mark. Such values are read behind all that the GPU was asked to do.
#pragma once

#include <ATen/core/Tensor.h>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// The trace, which nobody waits for, has run on the calling thread and its stream: marks the place, if the trace is a
// part of a step.
void MarkEndOfPart(Trace* trace);

// Its storages have their contents: notes those that may be read early. The device lock is held.
void NoteEarlyReads(const Trace& trace);

// The host's copy of a content of this stamp, once the part that has made it is done; null if no part that is known
// has. Nothing of the thread's own is ahead.
c10::Storage ReadEarly(uint64_t stamp, const c10::Storage& content);

// An eager tensor of the host with the tensor's values; undefined if they are to be waited for. All that the thread has
// recorded was launched.
at::Tensor ReadEarly(const at::Tensor& tensor);

}  // namespace torch_lazy::lazy
