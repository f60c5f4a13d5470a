// SPDX-License-Identifier: Apache-2.0
// Messages of one line on stderr, and the dump folder.
//
//   LAZY_LOG(1, "sync: ", reason);   // built only if option `log` is at least 1
//   WarnOnce("no compiler", "no C++ compiler was found, so ops run one by one");
//
// Level 0 warnings, 1 syncs and ops without a lowering, 2 stages and times, 3 sources.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/flags.h"

namespace torch_lazy::base {

void LogLine(const std::string& line);  // "lazy: line"
void WarnOnce(absl::string_view key,
              const std::string& message);  // the first time that `key` is seen

// A numbered folder "<dump>/0003-<name>" for one subject's files, as base/folder.h makes them; empty
// if option `dump` is, or if it cannot be made. The option cannot change from then on.
std::string MakeDumpFolder(absl::string_view name);
// Does nothing if `folder` is empty. A file that cannot be written is a warning, never an error.
void WriteDump(const std::string& folder, absl::string_view file, absl::string_view text);

}  // namespace torch_lazy::base

#define LAZY_LOG(level, ...)                                                                            \
  do {                                                                                                  \
    if (__builtin_expect(::torch_lazy::base::Number(::torch_lazy::base::Option::kLog) >= (level), 0)) { \
      ::torch_lazy::base::LogLine(::absl::StrCat(__VA_ARGS__));                                         \
    }                                                                                                   \
  } while (false)
