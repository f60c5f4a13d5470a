// SPDX-License-Identifier: Apache-2.0
// Checks of our own invariants, which end the program.
//
// The user's errors are TORCH_CHECK (above ir/); the machine's are absl::Status. A failed
// LAZY_CHECK is a bug of this library: it prints where and why, and aborts.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace torch_lazy::base {

// Prints "file:line: check failed: condition: message" and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace torch_lazy::base

// LAZY_CHECK(a == b, "extents differ: ", a, " and ", b)
#define LAZY_CHECK(condition, ...)                                                    \
  do {                                                                                \
    if (__builtin_expect(!(condition), 0)) {                                          \
      ::torch_lazy::base::CheckFailed(__FILE__, __LINE__, #condition,                 \
                                      ::absl::StrCat("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                 \
  } while (false)

#ifdef NDEBUG
#define LAZY_DCHECK(condition, ...) \
  do {                              \
  } while (false && (condition))
#else
#define LAZY_DCHECK(condition, ...) LAZY_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif
