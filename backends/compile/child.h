// SPDX-License-Identifier: Apache-2.0
// Programs run beside us, never through a shell.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace torch_lazy::backends {

// What a child gets where all processors are busy.
enum class Priority {
  kIdle,  // nothing
  kLow,   // a sixth of one: a program's step takes a fifth longer
  kNormal,
};

struct ChildOptions {
  std::vector<std::string> arguments;  // the first is the program, looked up in PATH
  std::string output_file;             // receives stdout and stderr
  Priority priority = Priority::kNormal;
  // Instead of that file: ours that become its files 0, 1, 3, 4 and so on.
  std::vector<int> files = {};
  bool own_group = true;              // of processes, which are ended together
  std::string temporary_folder = "";  // its TMPDIR; empty: ours
};

// With a small environment and none of our files.
absl::StatusOr<pid_t> StartChild(const ChildOptions& options);

// True if it ends within the limit. EndChild is still to be called.
bool EndsWithin(pid_t child, absl::Duration limit);

// Ok if it has ended with exit status 0. Its group is killed if it has not ended; where that is
// ours, the child alone.
absl::Status EndChild(pid_t child, bool own_group = true);
// The same, but it may end by itself: its group gets SIGTERM before, and a second. Where that is
// ours, we get it, too.
absl::Status AskChildToEnd(pid_t child, bool own_group = true);

// For the calling process and all that it starts. What a kernel's compilation takes is a tenth of
// it at most: 2 million characters in one function take g++ 0.4 GB.
void LimitResources();

// Of the child and of what it has started. False where the system forbids it: Linux lets ordinary
// users lower a priority, not raise it again.
bool SetPriority(pid_t child, Priority priority);

// Confines the child and what it has started to one of our processors, another one each turn.
//
// Beside a child of low priority, Linux (6.18) may leave two busy threads of a program on one
// processor for a second, in which its steps take twice as long. A processor that the child leaves
// takes one of them.
void MoveOn(pid_t child, int turn);
// Lets it run on all of them.
void Release(pid_t child);

}  // namespace torch_lazy::backends
