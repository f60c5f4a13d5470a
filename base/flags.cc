// SPDX-License-Identifier: Apache-2.0
#include "base/flags.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

namespace torch_lazy::base {
namespace {

// The texts behind the numbers. Leaked on purpose: threads may ask while the program exits.
struct Texts {
  absl::Mutex mutex;
  std::vector<std::string> values
      ABSL_GUARDED_BY(mutex);  // empty until the environment has been read
};

Texts& OptionTexts() {
  static Texts* texts = new Texts;
  return *texts;
}

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max() / 2;  // a cell has one bit more

std::optional<int64_t> NumberOf(const OptionInfo& info, absl::string_view text) {
  int64_t number = 0;
  bool on = false;
  switch (info.kind) {
    case OptionKind::kText:
      return text.empty() ? 0 : 1;
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
    case OptionKind::kChoice:
      return std::string(info.choices);
  }
  return "";
}

void Store(size_t index, int64_t number, absl::string_view text, std::vector<std::string>& values) {
  values[index] = std::string(text);
  internal::OptionCell(static_cast<Option>(index)).store(2 * number + 1, std::memory_order_relaxed);
}

// A variable with a value that its option cannot have keeps the default, with a word about it.
void ReadEnvironment(Texts& texts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(texts.mutex) {
  if (!texts.values.empty()) return;
  texts.values.resize(Options().size());
  for (size_t i = 0; i < Options().size(); ++i) {
    const OptionInfo& info = Options()[i];
    const std::string variable = absl::StrCat("LAZY_", absl::AsciiStrToUpper(info.name));
    const char* text = std::getenv(variable.c_str());
    std::optional<int64_t> number = text == nullptr ? std::nullopt : NumberOf(info, text);
    if (text != nullptr && !number.has_value()) {
      std::fprintf(stderr, "lazy: %s=%s is ignored, expected %s\n", variable.c_str(), text,
                   Expected(info).c_str());
    }
    if (number.has_value()) {
      Store(i, *number, text, texts.values);
    } else {
      Store(i, *NumberOf(info, info.default_text), info.default_text, texts.values);
    }
  }
}

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

absl::Status UnknownOption(absl::string_view name) {
  const auto nearest =
      std::min_element(Options().begin(), Options().end(), [&](const auto& a, const auto& b) {
        return EditDistance(name, a.name) < EditDistance(name, b.name);
      });
  return absl::InvalidArgumentError(absl::StrCat("set_option: there is no option '", name,
                                                 "', did you mean '", nearest->name, "'"));
}

}  // namespace

const std::vector<OptionInfo>& Options() {
  static const auto* options = new std::vector<OptionInfo>{
#define X(name, text, kind, default_text, choices, doc) \
  {text, OptionKind::kind, default_text, choices, doc},
      TORCH_LAZY_OPTION_LIST(X)
#undef X
  };
  static_assert(0
#define X(name, text, kind, default_text, choices, doc) +1
                TORCH_LAZY_OPTION_LIST(X) <= 15
#undef X
  );
  return *options;
}

std::string Text(Option option) {
  Texts& texts = OptionTexts();
  absl::MutexLock lock(&texts.mutex);
  ReadEnvironment(texts);
  return texts.values[static_cast<size_t>(option)];
}

bool IsDisabled(absl::string_view name) {
  const std::string names = Text(Option::kDisable);
  const std::vector<absl::string_view> list = absl::StrSplit(names, ',');
  return std::find(list.begin(), list.end(), name) != list.end();
}

absl::Status SetOption(absl::string_view name, absl::string_view value) {
  const auto found = std::find_if(Options().begin(), Options().end(),
                                  [&](const auto& o) { return o.name == name; });
  if (found == Options().end()) return UnknownOption(name);
  const std::optional<int64_t> number = NumberOf(*found, value);
  if (!number.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("set_option: ", name, " cannot be '", value,
                                                   "', expected ", Expected(*found)));
  }
  Texts& texts = OptionTexts();
  absl::MutexLock lock(&texts.mutex);
  ReadEnvironment(texts);
  Store(found - Options().begin(), *number, value, texts.values);
  return absl::OkStatus();
}

std::string Environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

int64_t internal::ReadOptionsAndGet(Option option) {
  Texts& texts = OptionTexts();
  absl::MutexLock lock(&texts.mutex);
  ReadEnvironment(texts);
  return OptionCell(option).load(std::memory_order_relaxed) >> 1;
}

}  // namespace torch_lazy::base
