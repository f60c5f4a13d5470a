// SPDX-License-Identifier: Apache-2.0
// Ctrl-C in Python, while its first thread waits in here.
#pragma once

namespace torch_lazy::lazy {

// Runs the handlers of signals that have come, as Python does between two lines of a program. True if one of them has raised:
// its exception is raised again as soon as the calling thread is back in Python. False where there is no Python, and in
// threads that run no handlers. Takes Python's lock.
bool IsInterrupted();

}  // namespace torch_lazy::lazy
