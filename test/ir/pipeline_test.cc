// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/pipeline.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/flags.h"
#include "gtest/gtest.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace torch_lazy::ir {
namespace {

Graph Twice() {
  return *Parse(R"(graph @twice(%x: f32[4]) {
    %0 = neg %x : f32[4]
    %1 = neg %x : f32[4]
    return %0, %1
  })");
}

TEST(Pipeline, LeavesOutDisabledPasses) {
  ASSERT_TRUE(base::SetOption("disable", "dce,cse").ok());
  EXPECT_TRUE(*Optimize(Twice(), {}) == Twice());
  ASSERT_TRUE(base::SetOption("disable", "").ok());
  EXPECT_EQ(Optimize(Twice(), {})->nodes.size(), 2u);
}

TEST(Pipeline, HasPassesThatOptionDisableKnows) {
  for (const Pass& pass : Passes()) EXPECT_TRUE(base::SetOption("disable", pass.name).ok()) << pass.name;
  ASSERT_TRUE(base::SetOption("disable", "").ok());
}

TEST(Pipeline, NamesThePassAfterWhichAGraphIsBroken) {
  Graph broken = Twice();
  broken.outputs[0].into = 7;
  const absl::StatusOr<Graph> result = Optimize(broken, {/*verify=*/true, /*dump_folder=*/""});
  EXPECT_EQ(std::string(result.status().message()).substr(0, 67),
            "pass cse made a broken graph: return: there is no parameter 7\ngraph");
}

TEST(Pipeline, DumpsTheGraphAfterEachPass) {
  const std::string folder = testing::TempDir() + "/lazy_pipeline_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(Optimize(Twice(), {/*verify=*/false, folder}).ok());
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), Passes().size());
  for (size_t k = 0; k < files.size(); ++k) EXPECT_EQ(files[k], absl::StrCat(10 + k, "-", Passes()[k].name, ".lir"));
}

// A second run finds nothing that the first could not.
TEST(Pipeline, IsAFixedPointForWhatLoweringsMake) {
  Graph graph = *Parse(R"(graph @adam(%p: f32[s0], %m: f32[s0], $lr: f64, $c: f64) {
    %0 = div $lr, $c : f64[]
    %1 = cast %0 : f32[]
    %2 = reshape %1 : f32[1]
    %3 = expand %2 : f32[s0]
    %4 = sqrt %m : f32[s0]
    %5 = const {value=4} : f32[]
    %6 = reshape %5 : f32[1]
    %7 = expand %6 : f32[s0]
    %8 = div %4, %7 : f32[s0]
    %9 = mul %3, %8 : f32[s0]
    %10 = sub %p, %9 : f32[s0]
    return %10 -> %p
  })");
  const Graph once = *Optimize(graph, {});
  EXPECT_FALSE(once == graph);
  EXPECT_EQ(Print(*Optimize(once, {})), Print(once));
}

}  // namespace
}  // namespace torch_lazy::ir
