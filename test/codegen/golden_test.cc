// SPDX-License-Identifier: Apache-2.0
// test/golden/kernels: RUN is `plan` (buffers and steps) or `emit=cpp` (the kernels' text, without
// the functions that stand before it, and with short names); `large` after it: as if sizes were.
#include "test/ir/golden.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "codegen/compile.h"
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

std::string KernelText(const Plan& plan) {
  std::string text;  // in which "};" ends all kernels but the last
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const std::string& source = plan.kernels[k].source;
    if (k > 0) text.replace(text.size() - 2, 2, "};\n");
    const std::string kernel = source.substr(source.find("extern \"C\""));
    absl::StrAppend(&text,
                    absl::StrReplaceAll(kernel, {{plan.kernels[k].name, absl::StrCat("k", k)}}));
  }
  return text;
}

absl::StatusOr<std::string> RunCompile(absl::string_view run, const ir::Graph& graph) {
  CompileOptions options;
  if (absl::ConsumeSuffix(&run, " large")) options.typical_extents = LargeExtents();
  const absl::StatusOr<Plan> plan = Compile(graph, options);
  if (!plan.ok()) return plan.status();
  if (run == "plan") return plan->ToString();
  if (run == "emit=cpp") return KernelText(*plan);
  return absl::NotFoundError(absl::StrCat("RUN is plan or emit=cpp, not ", run));
}

}  // namespace
}  // namespace torch_lazy::codegen

// The tests run in the root of the repository.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  torch_lazy::ir::RegisterGoldens("test/golden/kernels", torch_lazy::codegen::RunCompile);
  return RUN_ALL_TESTS();
}
