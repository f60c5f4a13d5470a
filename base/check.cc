// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace torch_lazy::base {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  throw CheckError(absl::StrCat("lazy: an error of this library, please report it: ", file, ":", line,
                                ": check failed: ", condition, message.empty() ? "" : ": ", message));
}

void EndProgram(const std::string& message) {
  std::fprintf(stderr, "lazy: %s\n", message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace torch_lazy::base
