// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/math_text.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/kernels/float_functions.h"
#include "codegen/kernels/integer_functions.h"

namespace torch_lazy::codegen {

std::string FunctionsFor(absl::Span<const NamedFunction> functions, const std::string& code, bool guarded) {
  std::vector<const NamedFunction*> needed;
  std::string all = code;
  for (size_t k = functions.size(); k-- > 0;) {
    const NamedFunction& function = functions[k];
    if (!absl::StrContains(all, absl::StrCat(function.name, "(")) &&
        !absl::StrContains(all, absl::StrCat(function.name, "<"))) {
      continue;
    }
    needed.push_back(&function);
    absl::StrAppend(&all, function.text);
  }
  std::string text;
  for (auto function = needed.rbegin(); function != needed.rend(); ++function) {
    const std::string have = absl::StrCat("HAVE_", (*function)->name);
    if (guarded) absl::StrAppend(&text, "#ifndef ", have, "\n#define ", have);
    absl::StrAppend(&text, (*function)->text, guarded ? "#endif\n" : "");
  }
  return text;
}

absl::Span<const NamedFunction> MathFunctions() {
  static const auto* functions = [] {
    auto* all = new std::vector<NamedFunction>(FloatFunctions().begin(), FloatFunctions().end());
    all->insert(all->end(), IntegerFunctions().begin(), IntegerFunctions().end());
    return all;
  }();
  return *functions;
}

std::string MathFunctionsFor(const std::string& code) { return FunctionsFor(MathFunctions(), code, /*guarded=*/true); }

}  // namespace torch_lazy::codegen
