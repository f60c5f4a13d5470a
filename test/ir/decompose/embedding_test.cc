// SPDX-License-Identifier: Apache-2.0
#include "ir/decompose/embedding.h"

#include "gmock/gmock.h"
#include "test/ir/decompose/formula.h"

namespace torch_lazy::ir::decompose {
namespace {

using testing::ElementsAre;

const Formula kEmbedding = [](Builder& b, const std::vector<Value>& in) {
  return std::vector{Embedding(b, in[0], in[1])};
};

TEST(Embedding, TakesRowsForIndicesOfAnyRank) {
  const HostValue table = F64({3, 2}, {0, 1, 10, 11, 20, 21});
  const HostValue matrix = Apply(kEmbedding, {table, I64({2, 2}, {2, 0, 1, 1})})[0];
  EXPECT_THAT(matrix.sizes, ElementsAre(2, 2, 2));
  EXPECT_THAT(matrix.floats, ElementsAre(20, 21, 0, 1, 10, 11, 10, 11));
  EXPECT_THAT(Apply(kEmbedding, {table, I64({1}, {2})})[0].sizes, ElementsAre(1, 2));
  EXPECT_THAT(Apply(kEmbedding, {table, I64({}, {1})})[0].sizes, ElementsAre(2));
  EXPECT_THAT(Apply(kEmbedding, {table, I64({}, {1})})[0].floats, ElementsAre(10, 11));
  EXPECT_THAT(Apply(kEmbedding, {table, I64({0}, {})})[0].sizes, ElementsAre(0, 2));
}

}  // namespace
}  // namespace torch_lazy::ir::decompose
