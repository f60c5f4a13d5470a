// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/zeros.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(Factories, EmptyHasEagersGeometry) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor lazy = at::empty({2, 3, 4, 5}, at::dtype(at::kDouble).device(Lazy()), format);
    const at::Tensor cpu = at::empty({2, 3, 4, 5}, at::dtype(at::kDouble), format);
    EXPECT_EQ(lazy.strides(), cpu.strides());
    EXPECT_EQ(lazy.storage().nbytes(), cpu.storage().nbytes());
  }
  const at::Tensor none = at::empty({0, 3}, at::device(Lazy()));
  EXPECT_EQ(none.strides(), at::empty({0, 3}).strides());
  EXPECT_EQ(at::empty_strided({2, 3}, {5, 1}, at::device(Lazy())).storage().nbytes(), 8 * sizeof(float));
}

TEST(Factories, EmptyTakesNoMemory) {
  const at::Tensor huge = at::empty({int64_t{1} << 40}, at::device(Lazy()));
  EXPECT_EQ(huge.storage().nbytes(), size_t{4} << 40);
}

TEST(Factories, Values) {
  ExpectSame(at::zeros({2, 3}, at::device(Lazy())), at::zeros({2, 3}));
  ExpectSame(at::full({2}, 1.5, at::device(Lazy())), at::full({2}, 1.5));
  ExpectSame(at::arange(5, at::device(Lazy())), at::arange(5));
  ExpectSame(at::eye(3, at::device(Lazy())), at::eye(3));
  ExpectSame(at::tril_indices(3, 3, 0, at::device(Lazy())), at::tril_indices(3, 3, 0));
}

// The same call but for its numbers, which say how long the result is.
TEST(Factories, RangesResizeTheirOutput) {
  for (const int64_t length : {0, 0, 3, 3, 5, 2}) {
    at::Tensor empty = at::empty({0}, at::dtype(at::kLong).device(Lazy()));
    at::Tensor two = at::empty({2}, at::dtype(at::kLong).device(Lazy()));
    ExpectSame(at::arange_out(empty, length), at::arange(length));
    ExpectSame(at::arange_out(two, 0, length, 1), at::arange(length));
  }
}

TEST(Factories, RefuseWhatEagerRefuses) {
  EXPECT_THROW(at::empty({-1}, at::device(Lazy())), c10::Error);
  EXPECT_THROW(at::empty({1}, at::device(Lazy()).pinned_memory(true)), c10::Error);
}

}  // namespace
}  // namespace torch_lazy::device
