// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(Copies, HostDataIsTakenAtOnce) {
  at::Tensor cpu = Iota({5});
  const at::Tensor x = ToLazy(cpu);
  cpu.zero_();
  ExpectSame(x, Iota({5}));
}

TEST(Copies, HostDataWaitsForPendingReaders) {
  const at::Tensor x = ToLazy(Iota({5}));
  const at::Tensor before = x.mul(2);
  at::Tensor cpu = Iota({5}).neg();
  x.copy_(cpu);
  cpu.zero_();
  const at::Tensor after = x.mul(2);
  ExpectSame(before, Iota({5}).mul(2));
  ExpectSame(after, Iota({5}).mul(-2));
}

// Both casts are one value to the compiler, and nobody reads what the call in place makes of the first.
TEST(Copies, ACallInPlaceLeavesAnEqualValueAlone) {
  SetOption("compile", "sync");
  for (int time = 0; time < 2; ++time) {  // the first time shapes are learned, which cuts
    const at::Tensor three = at::full({1, 2, 1}, 3, at::dtype(at::kFloat).device(Lazy())), ones = ToLazy(at::ones({2}));
    at::Tensor cast = three.to(at::kDouble);
    at::_foreach_mul_(std::vector<at::Tensor>{ones.narrow(0, 0, 1), cast}, std::vector<at::Scalar>{2, 3});
    cast = three.to(at::kDouble);
    ExpectSame(cast, at::full({1, 2, 1}, 3, at::kDouble));
    ExpectSame(ones, at::full({2}, 1, at::kFloat).add(Iota({2}).eq(0)));
  }
  SetOption("compile", "async");
}

TEST(Copies, CastAndBroadcastInAllDirections) {
  const at::Tensor row = Iota({4});
  at::Tensor x = at::arange(12, at::dtype(at::kInt).device(Lazy())).view({3, 4});
  at::Tensor expected = at::arange(12, at::kInt).view({3, 4});
  expected.copy_(row);
  x.copy_(ToLazy(row));
  ExpectSame(x, expected);
  x.zero_();
  x.copy_(row);
  ExpectSame(x, expected);
  at::Tensor host = at::arange(12, at::kDouble).view({3, 4});
  host.copy_(x[1]);
  EXPECT_TRUE(host.equal(row.to(at::kDouble).expand({3, 4})));
}

TEST(Copies, KeepStrides) {
  const at::Tensor cpu = Iota({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  ExpectSame(ToLazy(cpu), cpu);
  ExpectSame(ToLazy(cpu).clone(), cpu.clone());
  ExpectSame(ToLazy(cpu.slice(3, 0, 5, 2)), cpu.slice(3, 0, 5, 2).clone());
}

TEST(Copies, Item) {
  const at::Tensor x = ToLazy(Iota({3})).sum();
  EXPECT_EQ(x.item<float>(), 3);
  EXPECT_EQ(ToLazy(Iota({1})).to(at::kBool).item<bool>(), false);
  EXPECT_THROW(ToLazy(Iota({2})).item(), c10::Error);
}

TEST(Copies, ConjugatedSources) {
  const at::Tensor cpu = at::randn({3}, at::kComplexFloat), x = ToLazy(cpu);
  EXPECT_TRUE(x.conj().cpu().equal(cpu.conj()));
  ExpectSame(x.conj().clone(), cpu.conj().clone());
  at::Tensor y = ToLazy(cpu.clone());
  y.copy_(x.conj());
  ExpectSame(y, cpu.conj().resolve_conj());
}

}  // namespace
}  // namespace torch_lazy::device
