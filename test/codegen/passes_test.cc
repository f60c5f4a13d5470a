// SPDX-License-Identifier: Apache-2.0
// The table of codegen/passes/pipeline: each row is verified, dumped and left out like those of ir/.
#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "codegen/compile.h"
#include "codegen/passes/pipeline.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "ir/passes/pipeline.h"

namespace torch_lazy::codegen {
namespace {

ir::Graph SumOfRows() {
  return *ir::Parse(R"(graph @rows(%x: f32[4, 8]) {
    %0 = sum %x {dims=[1], keepdim=false} : f32[4]
    return %0
  })");
}

std::vector<ir::Pass> AllPasses() {
  std::vector<ir::Pass> all(ir::Passes().begin(), ir::Passes().end());
  all.insert(all.end(), Passes().begin(), Passes().end());
  return all;
}

ir::Graph Break(const ir::Graph& graph, ir::PassContext*) {
  ir::Graph broken = graph;
  broken.outputs[0].into = 7;
  return broken;
}

TEST(Passes, AnyThatBreaksAGraphIsNamed) {
  for (size_t k = 0; k < AllPasses().size(); ++k) {
    std::vector<ir::Pass> passes = AllPasses();
    passes[k].run = Break;
    ir::PassContext context;
    context.for_gpu = true;
    const absl::StatusOr<ir::Graph> result =
        ir::RunPasses(passes, SumOfRows(), {/*verify=*/true, /*dump_folder=*/""}, &context);
    ASSERT_FALSE(result.ok());
    EXPECT_TRUE(absl::StartsWith(
        result.status().message(),
        absl::StrCat("pass ", passes[k].name, " made a broken graph: return: there is no parameter 7\ngraph")))
        << result.status();
  }
}

TEST(Passes, AreLeftOutByTheirName) {
  for (const ir::Pass& pass : AllPasses()) {
    const absl::Status status = base::SetOption("disable", pass.name);
    EXPECT_EQ(status.ok(), !pass.is_needed) << pass.name;
    const std::vector<ir::Pass> alone = {{pass.name, Break, ir::Pass::Where::kAnywhere, pass.is_needed}};
    ir::PassContext context;
    const ir::Graph result = *ir::RunPasses(alone, SumOfRows(), {}, &context);
    EXPECT_EQ(result == SumOfRows(), !pass.is_needed) << pass.name;
  }
  ASSERT_TRUE(base::SetOption("disable", "").ok());
}

TEST(Passes, OfTheOtherPlaceDoNotRun) {
  const std::vector<ir::Pass> passes = {{"for_gpu", Break, ir::Pass::Where::kGpu},
                                        {"for_cpu", Break, ir::Pass::Where::kCpu}};
  for (const bool for_gpu : {false, true}) {
    ir::PassContext context;
    context.for_gpu = for_gpu;
    const absl::StatusOr<ir::Graph> result =
        ir::RunPasses(passes, SumOfRows(), {/*verify=*/true, /*dump_folder=*/""}, &context);
    EXPECT_TRUE(absl::StartsWith(result.status().message(), for_gpu ? "pass for_gpu made" : "pass for_cpu made"));
  }
}

// Files sort as they are made.
TEST(Passes, AreDumpedBesideThePlan) {
  const std::string folder = testing::TempDir() + "/lazy_passes_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  CompileOptions options;
  options.dump_folder = folder;
  ASSERT_TRUE(Compile(SumOfRows(), options).ok());
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  std::vector<std::string> expected;
  int number = 10;
  for (const ir::Pass& pass : ir::Passes()) expected.push_back(absl::StrCat(number++, "-", pass.name, ".lir"));
  number = 81;
  for (const ir::Pass& pass : Passes()) {
    if (pass.RunsFor({})) expected.push_back(absl::StrCat(number, "-", pass.name, ".lir"));
    ++number;
  }
  expected.insert(expected.end(), {"89-plan.txt", "90-k0.cc"});
  EXPECT_EQ(files, expected);
}

}  // namespace
}  // namespace torch_lazy::codegen
