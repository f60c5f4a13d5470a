// SPDX-License-Identifier: Apache-2.0
#include "ir/fingerprint.h"

#include "gtest/gtest.h"
#include "ir/attrs.h"
#include "ir/builder.h"
#include "ir/parse.h"

namespace torch_lazy::ir {
namespace {

Graph Small(absl::string_view name) {
  Builder b(name);
  const Value x = b.Param({DType::kF32, {Extent::Symbol(0), Extent::Constant(4)}});
  return b.Finish({{b.Sum(b.Neg(x), {1}, true)}});
}

TEST(Fingerprint, IgnoresTheName) {
  EXPECT_EQ(FingerprintOf(Small("a")), FingerprintOf(Small("b")));
  EXPECT_TRUE(Small("a") == Small("b"));
}

TEST(Fingerprint, IsTheSameInEveryRun) {
  EXPECT_EQ(FingerprintOf(Small("a")).ToString(), "7f571e97a7143635c09718a7527ab170");
}

void Change(int64_t& field) { ++field; }
void Change(bool& field) { field = !field; }
void Change(double& field) { field = field == 0 && !std::signbit(field) ? -0.0 : 0.0; }
void Change(std::string& field) { field += "x"; }
void Change(Extent& field) { field = Extent::Symbol(7); }
void Change(Ints& field) { field.push_back(3); }
void Change(Dims& field) { field.push_back(Extent::Symbol(3)); }

// Walks the attributes' list, so a new attribute is covered unasked.
TEST(Fingerprint, ChangesWithEachAttributeOfEachOp) {
  for (const auto& [op, dtype] : std::vector<std::pair<Op, DType>>{{Op::kConst, DType::kF32},
                                                                   {Op::kConst, DType::kI64},
                                                                   {Op::kIota, DType::kI64},
                                                                   {Op::kExtentOf, DType::kI64},
                                                                   {Op::kPermute, DType::kF32},
                                                                   {Op::kSlice, DType::kF32},
                                                                   {Op::kSum, DType::kF32},
                                                                   {Op::kTake, DType::kF32},
                                                                   {Op::kPut, DType::kF32},
                                                                   {Op::kCall, DType::kF32},
                                                                   {Op::kResult, DType::kF32}}) {
    Graph graph;
    graph.nodes.push_back(Node{.op = op, .inputs = {}, .type = {dtype, {}}, .attrs = {}});
    VisitAttrs([&, op = op, dtype = dtype](Attr attr, const char* name, auto field) {
      if (!Uses(UsedAttrs(op, dtype), attr)) return;
      Graph other = graph;
      Change(other.nodes[0].attrs.*field);
      EXPECT_FALSE(graph == other) << Info(op).text << " " << name;
      EXPECT_NE(FingerprintOf(graph), FingerprintOf(other)) << Info(op).text << " " << name;
    });
  }
}

TEST(Fingerprint, ChangesWithTypesInputsAndOutputs) {
  const char* texts[] = {
      "graph @g(%x: f32[4], %y: f32[4]) { %0 = sub %x, %y : f32[4] return %0 }",
      "graph @g(%x: f32[4], %y: f32[4]) { %0 = sub %y, %x : f32[4] return %0 }",
      "graph @g(%x: f32[s0], %y: f32[s0]) { %0 = sub %x, %y : f32[s0] return %0 }",
      "graph @g(%x: f64[4], %y: f64[4]) { %0 = sub %x, %y : f64[4] return %0 }",
      "graph @g(%x: f32[4], %y: f32[4]) { %0 = mul %x, %y : f32[4] return %0 }",
      "graph @g(%x: f32[4], %y: f32[4]) { %0 = sub %x, %y : f32[4] return %0 -> %x }",
      "graph @g(%x: f32[4], %y: f32[4]) { %0 = sub %x, %y : f32[4] return %0, %0 }",
  };
  for (size_t i = 0; i < std::size(texts); ++i) {
    for (size_t j = 0; j < std::size(texts); ++j) {
      EXPECT_EQ(FingerprintOf(*Parse(texts[i])) == FingerprintOf(*Parse(texts[j])), i == j) << i << " " << j;
      EXPECT_EQ(*Parse(texts[i]) == *Parse(texts[j]), i == j) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace torch_lazy::ir
