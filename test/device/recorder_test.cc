// SPDX-License-Identifier: Apache-2.0
// Which operators reach the recorder.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/native_layer_norm.h>
#include <torch/library.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

bool HasKernel(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, overload)
      .hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
}

TEST(Recorder, AllFormsOfAnOperator) {
  EXPECT_TRUE(HasKernel("aten::add", "Tensor"));
  EXPECT_TRUE(HasKernel("aten::add_", "Tensor"));
  EXPECT_TRUE(HasKernel("aten::add", "out"));
  EXPECT_TRUE(HasKernel("aten::linear"));
  EXPECT_TRUE(HasKernel("aten::native_layer_norm"));
  EXPECT_TRUE(HasKernel("aten::_foreach_add_", "Scalar"));
}

TEST(Recorder, LeavesViewsAndCompositesAlone) {
  EXPECT_FALSE(HasKernel("aten::expand"));
  EXPECT_FALSE(HasKernel("aten::matmul"));
  EXPECT_FALSE(HasKernel("aten::rms_norm"));
}

TEST(Recorder, ListsAreOneCall) {
  std::vector<at::Tensor> lazy = {ToLazy(Iota({2})), ToLazy(Iota({3}))};
  at::_foreach_add_(lazy, 1);
  ExpectSame(lazy[1], Iota({3}).add(1));
  ExpectSame(at::_foreach_add(lazy, lazy)[0], Iota({2}).add(1).mul(2));
}

// Its Meta kernel calls another, which PyTorch has in Python alone.
TEST(Recorder, LogicalAndNeedsNoPython) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 3}, {3, 2}, {4, 1}}) {
    const at::Tensor x = Iota(sizes).to(at::kDouble), y = Iota(sizes).sub(1);
    ExpectSame(ToLazy(x).logical_and(ToLazy(y)), x.logical_and(y));
  }
}

TEST(Recorder, LayerNormIsEagers) {
  const at::Tensor x = at::randn({4, 8}), w = at::randn({8}), b = at::randn({8});
  const auto cpu = at::native_layer_norm(x, {8}, w, b, 1e-5);
  const auto lazy = at::native_layer_norm(ToLazy(x), {8}, ToLazy(w), ToLazy(b), 1e-5);
  ExpectSame(std::get<0>(lazy), std::get<0>(cpu));
  ExpectSame(std::get<2>(lazy), std::get<2>(cpu));
}

TEST(Recorder, LearnsNoShapeThatValuesDecide) {
  const at::Tensor few = Iota({6}).remainder(2), many = Iota({6});
  for (const at::Tensor& x : {few, many, few}) {
    EXPECT_EQ(std::get<0>(at::_unique(ToLazy(x))).sizes(), std::get<0>(at::_unique(x)).sizes());
  }
}

at::Tensor Twice(const at::Tensor& x) { return x.add(x); }
at::Tensor FirstRow(const at::Tensor& x) { return x[0]; }

TORCH_LIBRARY(lazy_recorder_test, m) {
  m.def("twice(Tensor x) -> Tensor");
  m.def("first_row(Tensor(a) x) -> Tensor(a)");
  m.def("composite(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(lazy_recorder_test, CPU, m) {
  m.impl("twice", TORCH_FN(Twice));
  m.impl("first_row", TORCH_FN(FirstRow));
}
TORCH_LIBRARY_IMPL(lazy_recorder_test, CompositeImplicitAutograd, m) { m.impl("composite", TORCH_FN(FirstRow)); }

at::Tensor CallOther(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<at::Tensor(const at::Tensor&)>().call(x);
}

TEST(Recorder, TakesOtherLibrariesOperators) {
  const at::Tensor x = ToLazy(Iota({2, 2}));
  ExpectSame(CallOther("lazy_recorder_test::twice", x), Iota({2, 2}).mul(2));
  EXPECT_TRUE(CallOther("lazy_recorder_test::composite", x).is_alias_of(x));
  EXPECT_THROW(CallOther("lazy_recorder_test::first_row", x), c10::NotImplementedError);
}

}  // namespace
}  // namespace torch_lazy::device
