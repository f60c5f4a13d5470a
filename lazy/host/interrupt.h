// SPDX-License-Identifier: Apache-2.0
// Ctrl-C in Python, while its first thread waits in here.
#pragma once

namespace torch_lazy::lazy {

// True if Ctrl-C has come, and its handler has not run yet: it does as soon as the calling thread is back in Python.
// Nothing runs here, since a handler might read what this thread is computing. False where there is no Python, and in
// threads that run no handlers. Takes Python's lock.
bool IsInterrupted();

}  // namespace torch_lazy::lazy
