// SPDX-License-Identifier: Apache-2.0
#include "ir/text_reader.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace torch_lazy::ir {

absl::Status TextReader::status() const { return ok() ? absl::OkStatus() : absl::InvalidArgumentError(error_); }

void TextReader::Fail(absl::string_view message) {
  if (!ok()) return;
  const auto line = 1 + std::count(text_.begin(), text_.begin() + std::min(at_, text_.size()), '\n');
  error_ = absl::StrCat("parse: line ", line, ": ", message);
}

void TextReader::SkipSpace() {
  while (at_ < text_.size()) {
    if (absl::ascii_isspace(text_[at_])) {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

char TextReader::Peek() {
  SkipSpace();
  return ok() && at_ < text_.size() ? text_[at_] : '\0';
}

bool TextReader::AtEnd() { return Peek() == '\0'; }

bool TextReader::Try(absl::string_view token) {
  SkipSpace();
  if (!ok() || text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

void TextReader::Expect(absl::string_view token) {
  if (!Try(token)) Fail(absl::StrCat("expected '", token, "'"));
}

absl::string_view TextReader::Word(absl::string_view also) {
  SkipSpace();
  const size_t begin = at_;
  while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || absl::StrContains(also, text_[at_]))) ++at_;
  if (at_ == begin) Fail("expected a word");
  return ok() ? text_.substr(begin, at_ - begin) : "";
}

absl::string_view TextReader::Name() {
  SkipSpace();
  const size_t begin = at_;
  if (!Try("%") && !Try("$")) Fail("expected '%' or '$'");
  Word();
  return ok() ? text_.substr(begin, at_ - begin) : "";
}

std::string TextReader::Quoted() {
  Expect("\"");
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  std::string value;
  if (at_ >= text_.size()) {
    Fail("expected a closing '\"'");
  } else if (!absl::CUnescape(text_.substr(begin, at_ - begin), &value)) {
    Fail("bad escape in a quoted text");
  }
  ++at_;
  return value;
}

int64_t TextReader::Integer() {
  const absl::string_view word = Word("-");
  int64_t value = 0;
  if (ok() && !absl::SimpleAtoi(word, &value)) Fail(absl::StrCat("expected an integer, not '", word, "'"));
  return value;
}

}  // namespace torch_lazy::ir
