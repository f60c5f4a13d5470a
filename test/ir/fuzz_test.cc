// SPDX-License-Identifier: Apache-2.0
// Random graphs: their text reads back, and no pass changes what they mean.
#include "gtest/gtest.h"
#include "ir/fingerprint.h"
#include "ir/parse.h"
#include "ir/passes/pipeline.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "test/ir/random_graph.h"

namespace torch_lazy::ir {
namespace {

constexpr uint32_t kSeeds = 500;
constexpr int kNodes = 60;

void ExpectSameMeaning(const Graph& before, const Graph& after, const EvaluateInputs& inputs) {
  const auto expected = Evaluate(before, inputs), actual = Evaluate(after, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status() << Print(before);
  ASSERT_TRUE(actual.ok()) << actual.status() << Print(after);
  for (size_t k = 0; k < expected->size(); ++k) {
    ASSERT_TRUE(SameNumbers((*actual)[k], (*expected)[k])) << "output " << k << " of\n"
                                                           << Print(before) << Print(after);
  }
}

class Fuzz : public testing::TestWithParam<uint32_t> {
 protected:
  const RandomGraph random_ = MakeRandomGraph(GetParam(), kNodes);
};

TEST_P(Fuzz, TextReadsBack) {
  const Graph& graph = random_.graph;
  ASSERT_TRUE(Verify(graph).ok()) << Verify(graph) << Print(graph);
  const absl::StatusOr<Graph> read = Parse(Print(graph));
  ASSERT_TRUE(read.ok()) << read.status() << Print(graph);
  EXPECT_TRUE(*read == graph) << Print(graph);
  EXPECT_EQ(Print(*read), Print(graph));
  EXPECT_EQ(FingerprintOf(*read), FingerprintOf(graph));
}

TEST_P(Fuzz, NoPassChangesTheMeaning) {
  for (const Pass& pass : Passes()) {
    SCOPED_TRACE(std::string(pass.name));
    PassContext context;
    const Graph after = pass.run(random_.graph, &context);
    ASSERT_TRUE(Verify(after).ok()) << Verify(after) << Print(after);
    ExpectSameMeaning(random_.graph, after, random_.inputs);
  }
}

TEST_P(Fuzz, ThePipelineKeepsTheMeaning) {
  const absl::StatusOr<Graph> after = Optimize(random_.graph, {/*verify=*/true, /*dump_folder=*/""});
  ASSERT_TRUE(after.ok()) << after.status();
  ExpectSameMeaning(random_.graph, *after, random_.inputs);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Fuzz, testing::Range(0u, kSeeds));

}  // namespace
}  // namespace torch_lazy::ir
