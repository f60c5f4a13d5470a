// SPDX-License-Identifier: Apache-2.0
// Settings of PyTorch hold from the call on that is made under them, whatever is pending or was learned before.
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

void SetDefault(at::ScalarType dtype) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(dtype)); }

TEST(Settings, DefaultDType) {
  const at::Tensor x = ToLazy(at::arange(4));
  std::vector<at::Tensor> lazy, cpu;
  for (const at::ScalarType dtype : {at::kFloat, at::kFloat, at::kDouble, at::kDouble, at::kFloat}) {
    SetDefault(dtype);
    lazy.push_back(x.div(3).add(x));
    cpu.push_back(at::arange(4).div(3).add(at::arange(4)));
  }
  for (size_t k = 0; k < lazy.size(); ++k) ExpectSame(lazy[k], cpu[k]);
  EXPECT_EQ(c10::get_default_dtype_as_scalartype(), at::kFloat);
}

TEST(Settings, OfAPendingCall) {
  SetDefault(at::kDouble);
  const at::Tensor y = ToLazy(at::arange(4)).div(3), cpu = at::arange(4).div(3);
  SetDefault(at::kFloat);
  ExpectSame(y, cpu);
}

TEST(Settings, Determinism) {
  const at::Tensor index = ToLazy(at::arange(1)), source = ToLazy(Iota({1}));
  at::Tensor x = ToLazy(Iota({3}));
  for (const bool on : {false, true}) {
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
    if (on)
      EXPECT_THROW(x.put_(index, source), c10::Error);
    else
      x.put_(index, source);
  }
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

}  // namespace
}  // namespace torch_lazy::device
