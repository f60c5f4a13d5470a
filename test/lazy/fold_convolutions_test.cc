// SPDX-License-Identifier: Apache-2.0
// test/golden/convolutions: RUN names the pass, and which parameters are constants.
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/flags.h"
#include "gtest/gtest.h"
#include "ir/passes/passes.h"
#include "ir/passes/pipeline.h"
#include "ir/print.h"
#include "lazy/libraries/fold_convolutions.h"
#include "test/ir/golden.h"

namespace torch_lazy::lazy {
namespace {

absl::StatusOr<std::string> Fold(absl::string_view run, const ir::Graph& graph) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(run, absl::MaxSplits(", constants ", 1));
  const ir::Pass* const pass = ir::FindPass(ConvolutionPasses(), parts.first);
  if (pass == nullptr) return absl::NotFoundError("RUN: fold_convolutions or relu_convolutions, constants 1,2,...");
  ir::PassContext context;
  context.for_gpu = pass->where == ir::Pass::Where::kGpu;
  context.constant_params.assign(static_cast<size_t>(graph.num_params()), false);
  for (const absl::string_view text : absl::StrSplit(parts.second, ',')) {
    size_t param = 0;
    if (!absl::SimpleAtoi(text, &param) || param >= context.constant_params.size())
      return absl::InvalidArgumentError("no such parameter");
    context.constant_params[param] = true;
  }
  absl::StatusOr<ir::Graph> folded = ir::RunPasses({pass, 1}, graph, {.verify = true, .dump_folder = ""}, &context);
  if (!folded.ok()) return folded.status();
  return ir::Print(ir::EliminateDeadCode(*folded));
}

TEST(ConvolutionPasses, AreKnownToOptionDisable) {
  for (const ir::Pass& pass : ConvolutionPasses()) EXPECT_TRUE(base::SetOption("disable", pass.name).ok()) << pass.name;
  EXPECT_TRUE(base::SetOption("disable", "").ok());
}

}  // namespace
}  // namespace torch_lazy::lazy

// The tests run in the root of the repository.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  torch_lazy::ir::RegisterGoldens("test/golden/convolutions", torch_lazy::lazy::Fold);
  return RUN_ALL_TESTS();
}
