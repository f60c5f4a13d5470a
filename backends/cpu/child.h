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

struct ChildOptions {
  std::vector<std::string> arguments;  // the first is the program, looked up in PATH
  std::string output_file;             // receives stdout and stderr
  bool idle = false;                   // run only when nobody else wants the processor
};

// A process group of its own, with a small environment and none of our files.
absl::StatusOr<pid_t> StartChild(const ChildOptions& options);

// Ok if it exits with 0. Soon an idle child gets its normal share; past the limit its
// group is killed.
absl::Status WaitForChild(pid_t child, absl::Duration limit);

// An idle child, and what it started, gets its normal share; does nothing where the system forbids
// it.
void RaiseChild(pid_t child);

}  // namespace torch_lazy::backends
