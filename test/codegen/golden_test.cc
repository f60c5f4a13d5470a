// SPDX-License-Identifier: Apache-2.0
// test/golden/kernels and test/golden/cuda: RUN is `plan` (buffers and steps; `plan=cuda`, for that
// target), `emit=cpp` or `emit=cuda` (the kernels' text, without the functions that stand before
// it, and with short names); `large` or `4096` after it: as if sizes were.
#include "test/ir/golden.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "codegen/compile.h"
#include "gtest/gtest.h"
#include "test/codegen/run_plan.h"

namespace torch_lazy::codegen {
namespace {

// From here on the text is the kernel's own.
size_t BeginOf(const Kernel& kernel) {
  const size_t arguments = kernel.source.find(absl::StrCat("struct ", kernel.name, "_arguments"));
  return arguments != std::string::npos ? arguments : kernel.source.find("extern \"C\"");
}

// A line "}" alone ends a golden's text: all but the last become "};".
std::string KernelText(const Plan& plan) {
  std::string text;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (kernel.threads > 0) {
      absl::StrAppend(&text, "// ", kernel.threads, " threads, ", kernel.iterations_per_block, " iterations a block\n");
    }
    absl::StrAppend(&text,
                    absl::StrReplaceAll(kernel.source.substr(BeginOf(kernel)), {{kernel.name, absl::StrCat("k", k)}}));
  }
  absl::StrReplaceAll({{"\n}\n", "\n};\n"}}, &text);
  if (!text.empty()) text.replace(text.size() - 3, 3, "}\n");
  return text;
}

absl::StatusOr<std::string> RunCompile(absl::string_view run, const ir::Graph& graph) {
  CompileOptions options;
  if (absl::ConsumeSuffix(&run, " large")) options.seen_extents = LargeExtents();
  if (absl::ConsumeSuffix(&run, " 4096")) options.seen_extents = std::vector<int64_t>(16, 4096);
  if (run == "emit=cuda" || run == "plan=cuda") options.target = Target::kCuda;
  const absl::StatusOr<Plan> plan = Compile(graph, options);
  if (!plan.ok()) return plan.status();
  if (run == "plan" || run == "plan=cuda") return plan->ToString();
  if (run == "emit=cpp" || run == "emit=cuda") return KernelText(*plan);
  return absl::NotFoundError(absl::StrCat("RUN is plan, plan=cuda, emit=cpp or emit=cuda, not ", run));
}

}  // namespace
}  // namespace torch_lazy::codegen

// The tests run in the root of the repository.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (const char* folder : {"test/golden/kernels", "test/golden/cuda"})
    torch_lazy::ir::RegisterGoldens(folder, torch_lazy::codegen::RunCompile);
  return RUN_ALL_TESTS();
}
