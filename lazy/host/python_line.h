// SPDX-License-Identifier: Apache-2.0
// The line that Python executes.
//
// Read through Python's C interface, found in the process: no Python code runs for it, in which an interrupt would be
// raised and lost.
#pragma once

#include <string>
#include <vector>

namespace torch_lazy::lazy {

// From now on lines are named. `others`: beginnings of file names that are not the program's. None: no longer.
void NamePythonLines(std::vector<std::string> others);

// "train.py:33 in step", of the innermost frame that is the program's own; empty if there is none. Takes Python's lock:
// no lock of ours is held.
std::string PythonLine();

}  // namespace torch_lazy::lazy
