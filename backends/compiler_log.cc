// SPDX-License-Identifier: Apache-2.0
#include "backends/compiler_log.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/log.h"

namespace torch_lazy::backends {
namespace {

constexpr int kMostErrors = 3;
constexpr int kLinesBehind = 2;
constexpr size_t kMostBytes = 2000;

// "kernels.cu(7): error: x", "kernels.cc:7:3: fatal error: x", "ptxas fatal : x", "ptxas error : x"
bool BeginsError(absl::string_view line) {
  return absl::StrContains(line, "error:") || absl::StartsWith(line, "ptxas error") ||
         absl::StartsWith(line, "ptxas fatal");
}

bool BeginsWarning(absl::string_view line) { return absl::StrContains(line, "warning"); }

}  // namespace

std::string FirstErrors(absl::string_view log) {
  std::vector<absl::string_view> kept;
  int errors = 0, behind = 0;
  for (const absl::string_view line : absl::StrSplit(log, '\n', absl::SkipWhitespace())) {
    if (BeginsError(line)) {
      if (++errors > kMostErrors) break;
      behind = kLinesBehind + 1;
    } else if (BeginsWarning(line)) {
      behind = 0;
    }
    if (behind-- > 0) kept.push_back(line);
  }
  const std::string text = errors > 0 ? absl::StrJoin(kept, "\n") : std::string(log);
  return text.substr(0, kMostBytes);
}

void WarnOfCompiler(const absl::Status& status) {
  base::WarnOnce("compiler", absl::StrCat("kernels are not compiled, so ops run one by one: ", status.message()));
}

}  // namespace torch_lazy::backends
