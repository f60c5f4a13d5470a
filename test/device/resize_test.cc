// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(Resize, KeepsTheBytes) {
  at::Tensor x = ToLazy(Iota({4})).add(1);
  x.resize_({2, 3});
  EXPECT_EQ(x.sizes(), at::IntArrayRef({2, 3}));
  ExpectSame(x.view(6).slice(0, 0, 4), Iota({4}).add(1));
  x.resize_({2});
  ExpectSame(x, Iota({2}).add(1));
}

TEST(Resize, TakesMemoryFormats) {
  at::Tensor x = at::empty({0}, at::device(Lazy()));
  x.resize_({2, 3, 4, 5}, at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(x.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(x.storage().nbytes(), 120 * sizeof(float));
}

TEST(Resize, PointerFollows) {
  at::Tensor x = ToLazy(Iota({4}));
  ASSERT_NE(x.data_ptr(), nullptr);
  x.resize_({1024});
  static_cast<float*>(x.data_ptr())[1023] = 5;
  EXPECT_EQ(x[1023].item<float>(), 5);
  EXPECT_EQ(x[3].item<float>(), 3);
}

TEST(Resize, OutArgumentsGrow) {
  at::Tensor out = at::empty({0}, at::device(Lazy()));
  at::add_out(out, ToLazy(Iota({3})), ToLazy(Iota({3})));
  ExpectSame(out, Iota({3}).mul(2));
}

struct Deterministic {
  Deterministic() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false); }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false); }
};

TEST(Resize, FillsWhatIsNewWhenDeterministic) {
  const Deterministic guard;
  for (const at::ScalarType type : {at::kDouble, at::kComplexFloat, at::kBool, at::kInt, at::kUInt64}) {
    at::Tensor lazy = ToLazy(at::ones({2, 3}, type));
    at::Tensor cpu = at::ones({2, 3}, type);
    ExpectSame(lazy.resize_({4, 3}).view(at::kByte), cpu.resize_({4, 3}).view(at::kByte));
    ExpectSame(at::empty({3}, at::dtype(type).device(Lazy())).view(at::kByte), at::empty({3}, type).view(at::kByte));
  }
}

TEST(Set, SharesTheSource) {
  const at::Tensor x = ToLazy(Iota({6}));
  at::Tensor y = at::empty({0}, at::device(Lazy()));
  y.set_(x);
  EXPECT_TRUE(y.is_alias_of(x));
  y.set_(x.storage(), 2, {2, 2}, {2, 1});
  ExpectSame(y, Iota({6}).slice(0, 2).view({2, 2}));
  y.mul_(2);
  EXPECT_EQ(x.sum().item<float>(), 15 + 14);
  y.set_();
  EXPECT_EQ(y.numel(), 0);
  EXPECT_FALSE(y.is_alias_of(x));
}

TEST(Set, RefusesOtherDevices) {
  at::Tensor y = at::empty({0}, at::device(Lazy()));
  const at::Tensor cpu = Iota({2});
  EXPECT_THROW(y.set_(cpu.storage(), 0, {2}, {1}), c10::Error);
}

}  // namespace
}  // namespace torch_lazy::device
