// SPDX-License-Identifier: Apache-2.0
// Tokens of the text form, one after the other.
//
// The first error stops everything: it is kept, and every reading function then returns an empty
// value, so that callers need not look after each token.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace torch_lazy::ir {

class TextReader {
 public:
  explicit TextReader(absl::string_view text) : text_(text) {}

  bool ok() const { return error_.empty(); }
  absl::Status status() const;
  void Fail(absl::string_view message);  // the first call counts

  bool AtEnd();
  char Peek();                        // the next character that is not space or comment; 0 at the end
  bool Try(absl::string_view token);  // consumes `token` if it is next
  void Expect(absl::string_view token);
  absl::string_view Word(absl::string_view also = "_.");  // letters, digits and the characters `also`
  absl::string_view Name();                               // "%name" or "$name"
  std::string Quoted();                                   // "text", with C's escapes
  int64_t Integer();

 private:
  void SkipSpace();

  absl::string_view text_;
  size_t at_ = 0;
  std::string error_;
};

}  // namespace torch_lazy::ir
