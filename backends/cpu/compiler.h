// SPDX-License-Identifier: Apache-2.0
// The C++ compiler and how we call it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace torch_lazy::backends {

struct Compiler {
  std::vector<std::string> command;  // program and flags; the source's and the library's names are added
  std::string key;                   // one line: all that changes the code made from a source
};

// Option `compiler`, else $CXX, else g++ or c++ of the PATH: the names and the variables are those of
// the first call. An option or a $CXX that is no program, by its absolute path or in the PATH, is an
// error.
absl::StatusOr<Compiler> FindCompiler();

// The command that makes the shared library `library` from `source`.
std::vector<std::string> CompileCommand(const Compiler& compiler, const std::string& source,
                                        const std::string& library);

}  // namespace torch_lazy::backends
