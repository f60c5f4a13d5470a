// SPDX-License-Identifier: Apache-2.0
// test/golden/passes: RUN names passes, separated by commas, or `optimize` for all in their order.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "ir/passes/pipeline.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "test/ir/golden.h"

namespace torch_lazy::ir {
namespace {

absl::StatusOr<std::string> RunPasses(absl::string_view names, const Graph& graph) {
  Graph result = graph;
  for (absl::string_view name : absl::StrSplit(names, ',')) {
    if (name == "optimize") {
      absl::StatusOr<Graph> optimized = Optimize(result, {/*verify=*/true, /*dump_folder=*/""});
      if (!optimized.ok()) return optimized.status();
      result = *std::move(optimized);
      continue;
    }
    const Pass* pass = FindPass(name);
    if (pass == nullptr) return absl::NotFoundError(absl::StrCat("there is no pass ", name));
    result = pass->run(result);
    if (const absl::Status status = Verify(result); !status.ok()) return status;
  }
  return Print(result);
}

}  // namespace
}  // namespace torch_lazy::ir

// The tests run in the root of the repository.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  torch_lazy::ir::RegisterGoldens("test/golden/passes", torch_lazy::ir::RunPasses);
  return RUN_ALL_TESTS();
}
