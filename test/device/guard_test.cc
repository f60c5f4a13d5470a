// SPDX-License-Identifier: Apache-2.0
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <ATen/Context.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

const c10::impl::VirtualGuardImpl& Impl() {
  static const c10::impl::VirtualGuardImpl* const impl = new c10::impl::VirtualGuardImpl(at::kPrivateUse1);
  return *impl;
}

TEST(Guard, OneDevice) {
  EXPECT_EQ(Impl().deviceCount(), 1);
  EXPECT_EQ(Impl().getDevice(), at::Device("lazy:0"));
  const c10::DeviceGuard guard(at::Device("lazy:0"));
  EXPECT_EQ(guard.current_device(), at::Device("lazy:0"));
}

TEST(Guard, RefusesOtherIndices) {
  EXPECT_THROW(Impl().setDevice(at::Device("lazy:1")), c10::Error);
  EXPECT_THROW(at::arange(3, at::Device("lazy:1")), c10::Error);
}

TEST(Guard, StreamsAreDistinctAndCurrentPerThread) {
  const c10::Stream first = Impl().getStream(Lazy());
  const c10::Stream made = Impl().getStreamFromGlobalPool(Lazy());
  EXPECT_NE(first, made);
  EXPECT_EQ(Impl().exchangeStream(made), first);
  EXPECT_EQ(Impl().getStream(Lazy()), made);
  EXPECT_EQ(Impl().exchangeStream(first), made);
}

TEST(Guard, EventsAreInOrder) {
  c10::Event begin(at::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT),
      end(at::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  begin.record(Impl().getStream(Lazy()));
  const at::Tensor x = ToLazy(Iota({64})).mul(2);
  end.record(Impl().getStream(Lazy()));
  EXPECT_TRUE(end.query());
  EXPECT_GE(begin.elapsedTime(end), 0);
  ExpectSame(x, Iota({64}).mul(2));
}

TEST(Guard, IsTheAccelerator) {
  const at::AcceleratorHooksInterface& hooks = at::globalContext().getAcceleratorHooksInterface(at::kPrivateUse1);
  EXPECT_TRUE(hooks.isAvailable());
  EXPECT_EQ(hooks.deviceCount(), 1);
}

}  // namespace
}  // namespace torch_lazy::device
