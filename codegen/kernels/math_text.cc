// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/math_text.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/kernels/double_functions.h"
#include "codegen/kernels/float_functions.h"
#include "codegen/kernels/integer_functions.h"

namespace torch_lazy::codegen {

namespace {

// Adds the names that the code calls: words before `(` or `<`.
void AddCalled(absl::string_view code, absl::flat_hash_set<absl::string_view>* called) {
  const auto is_of_word = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t begin = 0; begin < code.size();) {
    size_t end = begin;
    while (end < code.size() && is_of_word(code[end])) ++end;
    if (end > begin && end < code.size() && (code[end] == '(' || code[end] == '<'))
      called->insert(code.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

std::string FunctionsFor(absl::Span<const NamedFunction> functions, const std::string& code, bool guarded) {
  std::vector<const NamedFunction*> needed;
  absl::flat_hash_set<absl::string_view> called;
  AddCalled(code, &called);
  for (size_t k = functions.size(); k-- > 0;) {
    if (!called.contains(functions[k].name)) continue;
    needed.push_back(&functions[k]);
    AddCalled(functions[k].text, &called);
  }
  std::string text;
  for (auto function = needed.rbegin(); function != needed.rend(); ++function) {
    // Functions of floats and of doubles share names.
    const std::string have = absl::StrCat("HAVE_", (*function)->name, "_", *function - functions.data());
    if (guarded) absl::StrAppend(&text, "#ifndef ", have, "\n#define ", have);
    absl::StrAppend(&text, (*function)->text, guarded ? "#endif\n" : "");
  }
  return text;
}

absl::Span<const NamedFunction> MathFunctions() {
  static const auto* functions = [] {
    auto* all = new std::vector<NamedFunction>(FloatFunctions().begin(), FloatFunctions().end());
    all->insert(all->end(), DoubleFunctions().begin(), DoubleFunctions().end());
    all->insert(all->end(), IntegerFunctions().begin(), IntegerFunctions().end());
    return all;
  }();
  return *functions;
}

std::string MathFunctionsFor(const std::string& code) { return FunctionsFor(MathFunctions(), code, /*guarded=*/true); }

}  // namespace torch_lazy::codegen
