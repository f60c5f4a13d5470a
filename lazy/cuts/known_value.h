// SPDX-License-Identifier: Apache-2.0
// Whole numbers and truth values that the host can read while other work stays pending.
//
// Note [Known values]
// A mixture of experts asks of each expert that has tokens whether it is the last, and takes its weights by its number.
// The numbers were found long before; what is pending is the work of the expert before. A wait would have that run
// first, by itself, and a GPU's queue would have to be empty. So the host reads small storages that nobody is about to
// write as they are, and a GPU's are copied as a whole, for who asks next. What few pending calls make of such values,
// as `expert == 8`, is computed on the host; their calls stay recorded, and are dropped if nobody else wants them.
// Calls that fill or copy in place are among them: a cache that has just been cleared is asked for its length.
//
// Floating numbers are waited for as ever: a loop that reads its loss is cut at the same place of every step, whether
// the loss is pending or not. So are truth values that follow from such numbers, but a wait need not be for all that is
// cut: Note [Early reads].
#pragma once

#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

// An eager tensor of the host with these values; undefined if they are to be waited for.
at::Tensor KnownValue(const at::Tensor& tensor);

// The same, of what follows from values that can be read early; waits for these. To be asked before the cut.
at::Tensor EarlyValue(const at::Tensor& tensor);

}  // namespace torch_lazy::lazy
