// SPDX-License-Identifier: Apache-2.0
#include "ir/unify.h"

#include "gtest/gtest.h"
#include "ir/fingerprint.h"
#include "ir/parse.h"

namespace torch_lazy::ir {
namespace {

using Symbols = std::vector<int32_t>;

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

constexpr absl::string_view kGeneral = R"(graph @g(%x: f32[s0, s1]) {
  %0 = slice %x {starts=[s2, 0], steps=[1, 1]} : f32[s3, s1]
  %1 = sum %0 {dims=[0], keepdim=false} : f32[s1]
  return %1
})";

// As many rows as columns, and the slice starts there as well.
constexpr absl::string_view kSpecial = R"(graph @g(%x: f32[s0, s0]) {
  %0 = slice %x {starts=[s0, 0], steps=[1, 1]} : f32[s1, s0]
  %1 = sum %0 {dims=[0], keepdim=false} : f32[s0]
  return %1
})";

TEST(Unify, ASpecialCaseIsFound) { EXPECT_EQ(Unify(Parsed(kGeneral), Parsed(kSpecial)), (Symbols{0, 0, 0, 1})); }

TEST(Unify, AGraphIsItsOwnSpecialCase) { EXPECT_EQ(Unify(Parsed(kGeneral), Parsed(kGeneral)), (Symbols{0, 1, 2, 3})); }

TEST(Unify, OneSymbolCannotStandForTwo) { EXPECT_EQ(Unify(Parsed(kSpecial), Parsed(kGeneral)), std::nullopt); }

TEST(Unify, ASymbolDoesNotStandForOneOrNone) {
  const Graph one = Parsed("graph @g(%x: f32[s0, 1]) {\n  %0 = neg %x : f32[s0, 1]\n  return %0\n}");
  const Graph two = Parsed("graph @g(%x: f32[s0, s1]) {\n  %0 = neg %x : f32[s0, s1]\n  return %0\n}");
  EXPECT_EQ(Unify(two, one), std::nullopt);
  EXPECT_EQ(Unify(one, two), std::nullopt);
  EXPECT_NE(SkeletonOf(one), SkeletonOf(two));
}

TEST(Unify, ASymbolThatStandsNowhere) {
  const Graph gap = Parsed("graph @g(%x: f32[s1]) {\n  %0 = neg %x : f32[s1]\n  return %0\n}");
  const Graph none = Parsed("graph @g(%x: f32[s0]) {\n  %0 = neg %x : f32[s0]\n  return %0\n}");
  EXPECT_EQ(Unify(gap, none), (Symbols{-1, 0}));
}

TEST(Unify, OtherGraphsAreNone) {
  const Graph general = Parsed(kGeneral);
  Graph changed = general;
  changed.nodes[2].attrs.keepdim = true;
  EXPECT_EQ(Unify(general, changed), std::nullopt);
  EXPECT_NE(SkeletonOf(general), SkeletonOf(changed));
  changed = general;
  changed.outputs[0].value = 1;
  EXPECT_EQ(Unify(general, changed), std::nullopt);
  changed = general;
  changed.nodes[1].type.dtype = DType::kF64;
  EXPECT_EQ(Unify(general, changed), std::nullopt);
}

constexpr absl::string_view kSameAsRows = R"(graph @g(%x: f32[s0, s0], %y: f32[s1]) {
  %0 = slice %y {starts=[s2], steps=[1]} : f32[s0]
  return %x, %0
})";
constexpr absl::string_view kSameAsColumns = R"(graph @g(%x: f32[s0, s1], %y: f32[s2]) {
  %0 = slice %y {starts=[s2], steps=[1]} : f32[s1]
  return %x, %0
})";
constexpr absl::string_view kAllDiffer = R"(graph @g(%x: f32[s0, s1], %y: f32[s2]) {
  %0 = slice %y {starts=[s3], steps=[1]} : f32[s1]
  return %x, %0
})";

TEST(Generalize, WhatIsEqualInBothStaysEqual) {
  const Graph a = Parsed(kSameAsRows), b = Parsed(kSameAsColumns);
  EXPECT_EQ(Unify(a, b), std::nullopt);
  EXPECT_EQ(Unify(b, a), std::nullopt);
  const std::optional<Graph> general = Generalize(a, b);
  ASSERT_TRUE(general.has_value());
  EXPECT_EQ(*general, Parsed(kAllDiffer));
  EXPECT_EQ(Unify(*general, a), (Symbols{0, 0, 1, 2}));
  EXPECT_EQ(Unify(*general, b), (Symbols{0, 1, 2, 2}));
  EXPECT_EQ(Generalize(b, a), general);
}

TEST(Generalize, AGraphAndItsSpecialCaseGiveTheGraph) {
  const Graph general = Parsed(kGeneral), special = Parsed(kSpecial);
  for (const std::optional<Graph>& both : {Generalize(general, special), Generalize(special, general)}) {
    ASSERT_TRUE(both.has_value());
    EXPECT_NE(Unify(*both, general), std::nullopt);
    EXPECT_NE(Unify(general, *both), std::nullopt);
  }
}

TEST(Generalize, OtherGraphsHaveNothingInCommon) {
  const Graph a = Parsed(kSameAsRows);
  Graph changed = a;
  changed.nodes[2].attrs.steps[0] = 2;
  EXPECT_EQ(Generalize(a, changed), std::nullopt);
  changed = a;
  changed.nodes[0].type.dims[1] = Extent::Constant(1);
  EXPECT_EQ(Generalize(a, changed), std::nullopt);
  changed = a;
  changed.outputs.pop_back();
  EXPECT_EQ(Generalize(a, changed), std::nullopt);
}

TEST(Skeleton, DoesNotTellSizesApart) { EXPECT_EQ(SkeletonOf(Parsed(kGeneral)), SkeletonOf(Parsed(kSpecial))); }

}  // namespace
}  // namespace torch_lazy::ir
