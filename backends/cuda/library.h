// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are looked for while the program runs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace torch_lazy::backends {

// Opens the first of `names` that can be, for good. The error says what `what` is for, and what was
// tried.
absl::StatusOr<void*> OpenLibrary(absl::Span<const std::string> names, const std::string& what);

// Already in this process; null if not.
void* FindOpenLibrary(const std::string& name);

// The folder of the open library whose file has this name; empty if there is none.
std::string FolderOfOpenLibrary(const std::string& file_name);

// Sets `*function` to the library's symbol.
template <typename Function>
absl::Status FindSymbol(void* library, const char* name, Function** function);
absl::StatusOr<void*> FindSymbol(void* library, const char* name);

template <typename Function>
absl::Status FindSymbol(void* library, const char* name, Function** function) {
  const absl::StatusOr<void*> symbol = FindSymbol(library, name);
  if (symbol.ok()) *function = reinterpret_cast<Function*>(*symbol);
  return symbol.status();
}

}  // namespace torch_lazy::backends
