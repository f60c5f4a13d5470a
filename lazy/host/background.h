// SPDX-License-Identifier: Apache-2.0
// Work that nobody waits for, done in its order by one thread of ours.
//
// The thread takes no signals, and never runs a parallel region: a second live team of OpenMP threads would slow down
// the first.
#pragma once

#include <functional>

namespace torch_lazy::lazy {

void InBackground(std::function<void()> work);

}  // namespace torch_lazy::lazy
