// SPDX-License-Identifier: Apache-2.0
#include "base/flags.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"

namespace torch_lazy::base {
namespace {

// The texts behind the numbers. Leaked on purpose: threads may ask while the program exits.
struct Texts {
  absl::Mutex mutex;
  std::vector<std::string> values ABSL_GUARDED_BY(mutex);  // empty until the environment has been read
};

Texts& OptionTexts() {
  static Texts* texts = new Texts;
  return *texts;
}

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max() / 2;  // a cell has one bit more

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// ", did you mean 'compile'?"; empty if no name is near.
std::string Suggestion(absl::string_view name, const std::vector<absl::string_view>& names) {
  const auto nearest = std::min_element(names.begin(), names.end(),
                                        [&](auto a, auto b) { return EditDistance(name, a) < EditDistance(name, b); });
  if (2 * EditDistance(name, *nearest) > name.size()) return "";
  return absl::StrCat(", did you mean '", *nearest, "'?");
}

std::vector<absl::string_view> OptionNames() {
  std::vector<absl::string_view> names;
  for (const OptionInfo& info : Options()) names.push_back(info.name);
  return names;
}

std::vector<absl::string_view> ChoicesOf(const OptionInfo& info) { return absl::StrSplit(info.choices, '|'); }

// The first of the words that is none of the choices; empty: all are.
absl::string_view UnknownWord(const OptionInfo& info, absl::string_view words) {
  const std::vector<absl::string_view> known = ChoicesOf(info);
  for (absl::string_view word : absl::StrSplit(words, ',', absl::SkipWhitespace())) {
    word = absl::StripAsciiWhitespace(word);
    if (std::find(known.begin(), known.end(), word) == known.end()) return word;
  }
  return "";
}

std::optional<int64_t> NumberOf(const OptionInfo& info, absl::string_view text) {
  int64_t number = 0;
  bool on = false;
  switch (info.kind) {
    case OptionKind::kText:
      return text.empty() ? 0 : 1;
    case OptionKind::kPath:
      return text.empty() || text[0] == '/' ? std::optional<int64_t>(!text.empty()) : std::nullopt;
    case OptionKind::kWords:
      return UnknownWord(info, text).empty() ? std::optional<int64_t>(!text.empty()) : std::nullopt;
    case OptionKind::kSwitch:
      return absl::SimpleAtob(text, &on) ? std::optional<int64_t>(on) : std::nullopt;
    case OptionKind::kNumber:
      if (!absl::SimpleAtoi(text, &number) || number < 0) return std::nullopt;
      return std::min(number, kLargest);
    case OptionKind::kChoice:
      for (absl::string_view choice : absl::StrSplit(info.choices, '|')) {
        if (choice == text) return number;
        ++number;
      }
      return std::nullopt;
  }
  return std::nullopt;
}

std::string Expected(const OptionInfo& info) {
  switch (info.kind) {
    case OptionKind::kText:
      return "a text";
    case OptionKind::kSwitch:
      return "0 or 1";
    case OptionKind::kNumber:
      return "a number that is not negative";
    case OptionKind::kPath:
      return "an absolute path";
    case OptionKind::kChoice:
      return std::string(info.choices);
    case OptionKind::kWords:
      return absl::StrCat("some of ", absl::StrReplaceAll(info.choices, {{"|", ","}}));
  }
  return "";
}

void Store(size_t index, int64_t number, absl::string_view text, std::vector<std::string>& values) {
  values[index] = std::string(text);
  internal::OptionCell(static_cast<Option>(index)).store(2 * number + 1, std::memory_order_relaxed);
}

void Say(const std::string& line) { std::fprintf(stderr, "lazy: %s\n", line.c_str()); }

// The words that are known, with a word about each other.
std::string KnownWords(const OptionInfo& info, absl::string_view variable, absl::string_view text) {
  const std::vector<absl::string_view> known = ChoicesOf(info);
  std::vector<absl::string_view> words;
  for (absl::string_view word : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    word = absl::StripAsciiWhitespace(word);
    if (std::find(known.begin(), known.end(), word) != known.end()) {
      words.push_back(word);
    } else {
      Say(absl::StrCat("warning: ", variable, ": there is no '", word, "'", Suggestion(word, known)));
    }
  }
  return absl::StrJoin(words, ",");
}

std::string VariableOf(absl::string_view option) { return absl::StrCat("LAZY_", absl::AsciiStrToUpper(option)); }

void WarnOfUnknownVariables() {
  std::vector<std::string> known;
  for (const OptionInfo& info : Options()) known.push_back(absl::AsciiStrToUpper(info.name));
  for (const VariableInfo& info : Variables()) known.emplace_back(info.name);
  const std::vector<absl::string_view> names(known.begin(), known.end());
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    absl::string_view name = *variable;
    name = name.substr(0, name.find('='));
    if (!absl::ConsumePrefix(&name, "LAZY_")) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    Say(absl::StrCat("warning: there is no variable LAZY_", name, Suggestion(name, names)));
  }
}

// A variable with a value that its option cannot have keeps the default, with a word about it.
void ReadEnvironment(Texts& texts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(texts.mutex) {
  if (!texts.values.empty()) return;
  texts.values.resize(Options().size());
  for (size_t i = 0; i < Options().size(); ++i) {
    const OptionInfo& info = Options()[i];
    const std::string variable = VariableOf(info.name);
    const char* const given = secure_getenv(variable.c_str());
    std::string text(given == nullptr ? info.default_text : given);
    if (info.kind == OptionKind::kWords) text = KnownWords(info, variable, text);
    if (!NumberOf(info, text).has_value()) {
      Say(absl::StrCat("warning: ", variable, "=", text, " is ignored, expected ", Expected(info)));
      text = std::string(info.default_text);
    }
    Store(i, *NumberOf(info, text), text, texts.values);
  }
  WarnOfUnknownVariables();
}

absl::Status UnknownOption(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("set_option: there is no option '", name, "'", Suggestion(name, OptionNames())));
}

absl::Status CannotBe(const OptionInfo& info, absl::string_view value) {
  if (info.kind == OptionKind::kWords) {
    const absl::string_view word = UnknownWord(info, value);
    return absl::InvalidArgumentError(
        absl::StrCat("set_option: ", info.name, ": there is no '", word, "'", Suggestion(word, ChoicesOf(info))));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("set_option: ", info.name, " cannot be '", value, "', expected ", Expected(info)));
}

uint32_t BitOf(size_t option) { return uint32_t{1} << option; }

}  // namespace

const std::vector<OptionInfo>& Options() {
  static const auto* options = new std::vector<OptionInfo>{
#define X(name, text, kind, default_text, choices, doc) {text, OptionKind::kind, default_text, choices, doc},
      TORCH_LAZY_OPTION_LIST(X)
#undef X
  };
  static_assert(0
#define X(name, text, kind, default_text, choices, doc) +1
                TORCH_LAZY_OPTION_LIST(X) <= 32  // bits, and cells, there are for them
#undef X
  );
  return *options;
}

const std::vector<VariableInfo>& Variables() {
  static const auto* variables = new std::vector<VariableInfo>{
#define X(name, doc) {name, doc},
      TORCH_LAZY_VARIABLE_LIST(X)
#undef X
  };
  return *variables;
}

std::string Text(Option option) {
  Texts& texts = OptionTexts();
  absl::MutexLock lock(&texts.mutex);
  ReadEnvironment(texts);
  return texts.values[static_cast<size_t>(option)];
}

std::string FixedText(Option option) {
  internal::FixedOptions().fetch_or(BitOf(static_cast<size_t>(option)));
  return Text(option);
}

bool IsDisabled(absl::string_view name) {
  const std::string names = Text(Option::kDisable);
  const std::vector<absl::string_view> list = absl::StrSplit(names, ',');
  return std::any_of(list.begin(), list.end(), [&](auto word) { return absl::StripAsciiWhitespace(word) == name; });
}

absl::Status SetOption(absl::string_view name, absl::string_view value) {
  const auto found = std::find_if(Options().begin(), Options().end(), [&](const auto& o) { return o.name == name; });
  if (found == Options().end()) return UnknownOption(name);
  const std::optional<int64_t> number = NumberOf(*found, value);
  if (!number.has_value()) return CannotBe(*found, value);
  const size_t index = static_cast<size_t>(found - Options().begin());
  Texts& texts = OptionTexts();
  absl::MutexLock lock(&texts.mutex);
  ReadEnvironment(texts);
  if ((internal::FixedOptions().load() & BitOf(index)) != 0 && value != texts.values[index]) {
    return absl::FailedPreconditionError(absl::StrCat("set_option: ", name, " is '", texts.values[index],
                                                      "' and in use, so it cannot change any more: set it, or ",
                                                      VariableOf(name), ", before the device is used"));
  }
  Store(index, *number, value, texts.values);
  return absl::OkStatus();
}

std::string Environment(const char* variable) {
  const char* text = secure_getenv(variable);
  return text == nullptr ? "" : text;
}

int64_t internal::ReadOptionsAndGet(Option option) {
  Texts& texts = OptionTexts();
  absl::MutexLock lock(&texts.mutex);
  ReadEnvironment(texts);
  return OptionCell(option).load(std::memory_order_relaxed) >> 1;
}

}  // namespace torch_lazy::base
