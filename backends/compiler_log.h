// SPDX-License-Identifier: Apache-2.0
// What a compiler says, for people.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace torch_lazy::backends {

// The first errors of a log, each with the two lines behind it, where the compiler shows the place;
// of a log without any, the beginning. Warnings are left out.
std::string FirstErrors(absl::string_view log);

// Says, once, that there are no kernels for want of a compiler that works.
void WarnOfCompiler(const absl::Status& status);

}  // namespace torch_lazy::backends
