// SPDX-License-Identifier: Apache-2.0
// Lines of the user's program, for explain().
#pragma once

#include <string>
#include <vector>

namespace torch_lazy::lazy {

// Where the program is: in Python, or, with option log, the addresses of a C++ program's frames.
struct SourceLine {
  std::string text;  // "train.py:33 in step"
  std::vector<void*> frames;
};

// Takes some microseconds, and Python's lock: no lock of ours is held.
SourceLine CurrentSourceLine();

// The lines as texts, empty where unknown. Frames are looked up in the program's debug information, which takes a
// while.
std::vector<std::string> TextsOf(const std::vector<SourceLine>& lines);

}  // namespace torch_lazy::lazy
