// SPDX-License-Identifier: Apache-2.0
#include "backends/compiler_log.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace torch_lazy::backends {
namespace {

TEST(FirstErrors, ComeBeforeAnyNumberOfWarnings) {
  std::string log;
  for (int k = 0; k < 300; ++k) {
    absl::StrAppend(&log, "kernels.cu(", k, "): warning #177-D: variable \"e", k,
                    "\" was declared but never referenced\n", "    const long e", k, " = 0;\n               ^\n\n");
  }
  const std::string error = "kernels.cu(301): error: identifier \"x\" is undefined\n    float y = x;\n              ^";
  EXPECT_EQ(FirstErrors(absl::StrCat(log, error, "\n\n1 error detected in the compilation of \"kernels.cu\".\n")),
            error);
}

TEST(FirstErrors, AreThree) {
  EXPECT_EQ(FirstErrors("a:1: error: one\na:2: error: two\na:3: fatal error: three\na:4: error: four\n"),
            "a:1: error: one\na:2: error: two\na:3: fatal error: three");
}

TEST(FirstErrors, AreThoseOfTheAssemblerToo) {
  EXPECT_EQ(FirstErrors("ptxas info    : something\nptxas error   : Entry function 'k' uses too "
                        "much shared data\n"),
            "ptxas error   : Entry function 'k' uses too much shared data");
  EXPECT_EQ(FirstErrors("ptxas fatal   : Unresolved extern function 'f'\n"),
            "ptxas fatal   : Unresolved extern function 'f'");
}

TEST(FirstErrors, AreTheBeginningWhereThereAreNone) {
  EXPECT_EQ(FirstErrors("collect2: ld returned 1 exit status\n"), "collect2: ld returned 1 exit status\n");
  EXPECT_EQ(FirstErrors(""), "");
  EXPECT_EQ(FirstErrors(std::string(10000, 'x')).size(), 2000u);
}

}  // namespace
}  // namespace torch_lazy::backends
