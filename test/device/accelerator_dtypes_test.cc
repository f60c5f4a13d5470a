// SPDX-License-Identifier: Apache-2.0
// Dtypes that the CPU refuses and CUDA takes.
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/avg_pool3d_backward.h>
#include <ATen/ops/full.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/trace.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(AcceleratorDtypes, IntegersAreCounted) {
  for (const at::ScalarType type : {at::kInt, at::kLong, at::kByte}) {
    const at::Tensor values = ToLazy(at::tensor({0, 1, 1, 3, 3, 3, 9}).to(type));
    ExpectSame(at::histc(values, 4, 0, 3), at::tensor({1, 2, 0, 3}).to(type));
    ExpectSame(at::histc(values, 3), at::tensor({3, 3, 1}).to(type));  // from the least to the largest
    ExpectSame(at::histc(values, 2, 3, 3 + 6), at::tensor({3, 1}).to(type));
  }
  // A bin's floating width would put these into the bin before.
  ExpectSame(at::histc(ToLazy(at::tensor({1, 49})), 49, 0, 49)[1], at::full({}, 1, at::kInt));
  EXPECT_THROW(at::histc(ToLazy(at::tensor({1})), 0), c10::Error);
  EXPECT_THROW(at::histc(ToLazy(at::tensor({1})), 2, 3, 1), c10::Error);
}

TEST(AcceleratorDtypes, ReducedFloatsArePooled) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor input = Iota({1, 2, 4, 4, 4}).div(7).to(type);
    const at::Tensor pooled = at::avg_pool3d(input.to(at::kFloat), 2).to(type);
    ExpectSame(at::avg_pool3d(ToLazy(input), 2), pooled);
    const std::array<int64_t, 3> two = {2, 2, 2}, none = {0, 0, 0};
    ExpectSame(
        at::avg_pool3d_backward(ToLazy(pooled), ToLazy(input), two, two, none, false, true, std::nullopt),
        at::avg_pool3d_backward(pooled.to(at::kFloat), input.to(at::kFloat), two, two, none, false, true, std::nullopt)
            .to(type));
  }
}

TEST(AcceleratorDtypes, Traces) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    ExpectSame(at::trace(ToLazy(Iota({3, 3}).to(type))), at::full({}, 12, type));
  }
  ExpectSame(at::trace(ToLazy(at::ones({3, 4}, at::kBool))), at::full({}, 3, at::kLong));
}

}  // namespace
}  // namespace torch_lazy::device
