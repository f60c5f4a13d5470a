// SPDX-License-Identifier: Apache-2.0
// Checks of our own invariants, which raise an error.
//
// The user's errors are TORCH_CHECK (above ir/); the machine's are absl::Status. A failed
// LAZY_CHECK is a bug of this library: it says where and why. It is an exception, since most of
// what is checked is lowering and planning: what cannot be planned runs op by op, and the program
// goes on.
#pragma once

#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"

namespace torch_lazy::base {

class CheckError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throws a CheckError: "file:line: check failed: condition: message".
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& message);

// Prints the message and aborts: where no exception may pass, as on the stack of a fiber.
[[noreturn]] void EndProgram(const std::string& message);

}  // namespace torch_lazy::base

// LAZY_CHECK(a == b, "extents differ: ", a, " and ", b)
#define LAZY_CHECK(condition, ...)                                                                                    \
  do {                                                                                                                \
    if (__builtin_expect(!(condition), 0)) {                                                                          \
      ::torch_lazy::base::CheckFailed(__FILE__, __LINE__, #condition, ::absl::StrCat("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                                                 \
  } while (false)

#ifdef NDEBUG
#define LAZY_DCHECK(condition, ...) \
  do {                              \
  } while (false && (condition))
#else
#define LAZY_DCHECK(condition, ...) LAZY_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif
