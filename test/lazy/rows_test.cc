// SPDX-License-Identifier: Apache-2.0
// What rows say of an overload, of its forms, and of operators whose names begin alike.
#include "lazy/ops/rows.h"

#include <gtest/gtest.h>

namespace torch_lazy::lazy {
namespace {

bool Lowered(Lowering&) { return true; }
bool Shaped(ShapeCall&) { return true; }
bool ShapedInPlace(ShapeCall&) { return true; }
void RunOtherwise(torch::jit::Stack*) {}

constexpr Row kRows[] = {
    {"aten::add.Tensor", Lowered, kBoolean | kRefusesTruth | kWhole, Shaped, RunOtherwise, ShapedInPlace},
    {.name = "aten::mul.Tensor", .flags = kBoolean},
    {.name = "aten::mul_.Tensor", .flags = kDenseResult},
    {.name = "aten::pow.Tensor_Scalar", .flags = kStructuralScalars},
    {.name = "aten::index*", .flags = kTakesHostTensors | kWholeInPlace},
    {.name = "aten::index_select", .flags = kTakesAllValues},
};

Facts Of(const char* name, const char* overload) {
  for (const Row& row : kRows) RegisterRow(row);
  return FactsOf(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

TEST(Rows, SayAllOfTheOverloadThatTheyName) {
  const Facts facts = Of("aten::add", "Tensor");
  EXPECT_EQ(facts.row, &kRows[0]);
  EXPECT_EQ(facts.form, RowForm::kNamed);
  EXPECT_TRUE(facts.Has(kBoolean) && facts.Has(kRefusesTruth) && facts.is_whole());
  EXPECT_EQ(facts.shape_rule(), &Shaped);
  EXPECT_EQ(facts.runner(), &RunOtherwise);
}

TEST(Rows, SayOfTheInPlaceFormWhatIsItsOwn) {
  const Facts facts = Of("aten::add_", "Tensor");
  EXPECT_EQ(facts.row, &kRows[0]);
  EXPECT_EQ(facts.form, RowForm::kInPlace);
  EXPECT_TRUE(facts.Has(kBoolean));
  EXPECT_FALSE(facts.is_whole());
  EXPECT_EQ(facts.shape_rule(), &ShapedInPlace);
  EXPECT_EQ(facts.runner(), nullptr);
}

TEST(Rows, SayNoShapeOfTheOutForm) {
  const Facts facts = Of("aten::add", "out");
  EXPECT_EQ(facts.row, &kRows[0]);
  EXPECT_EQ(facts.form, RowForm::kOut);
  EXPECT_TRUE(facts.Has(kBoolean));
  EXPECT_EQ(facts.shape_rule(), nullptr);
}

TEST(Rows, AreOfAnotherOverloadOnlyWhatHoldsForAll) {
  const Facts facts = Of("aten::add", "Scalar");
  EXPECT_EQ(facts.row, nullptr);
  EXPECT_EQ(facts.flags, kRefusesTruth);
}

TEST(Rows, OfAFormGoBeforeThatOfTheFunctionalForm) {
  const Facts facts = Of("aten::mul_", "Tensor");
  EXPECT_EQ(facts.row, &kRows[2]);
  EXPECT_EQ(facts.flags, kDenseResult);
}

// `pow_.Scalar` is in-place `pow.Tensor_Scalar`, and not `pow.Scalar`.
TEST(Rows, KnowFormsByTheirArguments) {
  EXPECT_EQ(Of("aten::pow_", "Scalar").row, &kRows[3]);
  EXPECT_EQ(Of("aten::pow", "Scalar").row, nullptr);
}

TEST(Rows, WithAStarAreOfAllWhoseNamesBeginSo) {
  const Facts facts = Of("aten::index_select", "");
  EXPECT_EQ(facts.row, &kRows[5]);
  EXPECT_TRUE(facts.Has(kTakesHostTensors) && facts.Has(kTakesAllValues));
  EXPECT_EQ(Of("aten::index_add_", "").row, nullptr);
  EXPECT_TRUE(Of("aten::index_add_", "").is_whole());
  EXPECT_FALSE(Of("aten::index_add", "").is_whole());
  EXPECT_EQ(Of("aten::gather", "").flags, kPlain);
}

TEST(Rows, ReplaceThoseOfTheirName) {
  static constexpr Row kOther = {.name = "aten::sub.Tensor", .flags = kBoolean};
  static constexpr Row kNewer = {.name = "aten::sub.Tensor", .flags = kDenseResult};
  RegisterRow(kOther);
  RegisterRow(kNewer);
  EXPECT_EQ(Of("aten::sub", "Tensor").row, &kNewer);
}

}  // namespace
}  // namespace torch_lazy::lazy
