// SPDX-License-Identifier: Apache-2.0
// Threads of ours, which serve until the process ends.
#pragma once

#include <functional>

namespace torch_lazy::base {

// Runs `work` in a thread of its own, which takes none of the program's signals. False if the
// system has no more threads: who asked for it does the work itself, or does without.
bool StartThread(std::function<void()> work);

}  // namespace torch_lazy::base
