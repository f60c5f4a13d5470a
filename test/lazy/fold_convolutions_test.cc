// SPDX-License-Identifier: Apache-2.0
// test/golden/convolutions: RUN says which parameters are constants, and whether ReLU joins.
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ir/passes/passes.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "lazy/libraries/fold_convolutions.h"
#include "test/ir/golden.h"

namespace torch_lazy::lazy {
namespace {

absl::StatusOr<std::string> Fold(absl::string_view run, const ir::Graph& graph) {
  std::vector<bool> constant_params(static_cast<size_t>(graph.num_params()), false);
  const bool fuses_relu = absl::ConsumePrefix(&run, "relu, ");
  if (!absl::ConsumePrefix(&run, "constants "))
    return absl::InvalidArgumentError("RUN: constants 1,2,...; or relu, constants 1,2,...");
  for (const absl::string_view text : absl::StrSplit(run, ',')) {
    size_t param = 0;
    if (!absl::SimpleAtoi(text, &param) || param >= constant_params.size())
      return absl::InvalidArgumentError("no such parameter");
    constant_params[param] = true;
  }
  const auto fold = fuses_relu ? &FuseReluConvolutions : &FoldIntoConvolutions;
  const ir::Graph folded = ir::EliminateDeadCode(fold(graph, constant_params));
  if (const absl::Status status = ir::Verify(folded); !status.ok()) return status;
  return ir::Print(folded);
}

}  // namespace
}  // namespace torch_lazy::lazy

// The tests run in the root of the repository.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  torch_lazy::ir::RegisterGoldens("test/golden/convolutions", torch_lazy::lazy::Fold);
  return RUN_ALL_TESTS();
}
