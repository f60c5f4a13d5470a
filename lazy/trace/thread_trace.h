// SPDX-License-Identifier: Apache-2.0
// Each thread's trace, and the list of all.
#pragma once

#include <memory>
#include <vector>

#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// The trace of the calling thread, made if it has none. The device lock is held.
std::shared_ptr<Trace>& ThreadTrace();

// The newest of the calling thread, null if there was none; and those of all threads.
std::shared_ptr<Trace> NewestTrace();
std::vector<std::shared_ptr<Trace>> TracesOfAllThreads();

}  // namespace torch_lazy::lazy
