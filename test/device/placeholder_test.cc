// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

const float* Address(const at::Tensor& tensor) { return static_cast<float*>(tensor.data_ptr()); }

TEST(Pointer, AccessRunsWhatIsPending) {
  const at::Tensor x = ToLazy(Iota({4})).add(1);
  EXPECT_EQ(Address(x)[3], 4);
}

TEST(Pointer, StaysThroughWritesInPlace) {
  at::Tensor x = ToLazy(Iota({4}));
  const float* const address = Address(x);
  x.mul_(2);
  EXPECT_EQ(Address(x), address);
  EXPECT_EQ(address[3], 6);
  x.fill_(7);
  EXPECT_EQ(Address(x), address);
  EXPECT_EQ(address[0], 7);
}

TEST(Pointer, EachAccessSeesTheLatestWrite) {
  at::Tensor x = ToLazy(Iota({4}));
  for (int step = 1; step < 6; ++step) {
    x.add_(1);
    EXPECT_EQ(Address(x)[0], step);
  }
}

TEST(Pointer, WritesThroughItAreSeenLater) {
  const at::Tensor x = ToLazy(Iota({4}));
  static_cast<float*>(x.data_ptr())[0] = 5;
  EXPECT_EQ(x.sum().item<float>(), 11);
}

TEST(Pointer, WritesThroughItComeAfterPendingReaders) {
  const at::Tensor x = ToLazy(Iota({4})).add(0);
  const at::Tensor y = x.mul(2);
  static_cast<float*>(x.data_ptr())[0] = 5;
  ExpectSame(y, Iota({4}).mul(2));
}

TEST(Pointer, IsItsOwnForEachStorage) {
  const at::Tensor x = ToLazy(Iota({4}));
  EXPECT_NE(x.data_ptr(), x.clone().data_ptr());
  const at::Tensor a = at::empty({4}, at::device(Lazy())), b = at::empty({4}, at::device(Lazy()));
  EXPECT_NE(a.const_data_ptr(), b.const_data_ptr());
  EXPECT_NE(a.const_data_ptr(), nullptr);
}

TEST(Pointer, OfNoElementsIsNull) { EXPECT_EQ(at::empty({0}, at::device(Lazy())).data_ptr(), nullptr); }

TEST(PointerDeathTest, ReadingThePlaceholderFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const at::Tensor x = at::empty({4}, at::device(Lazy()));
        volatile float value = *static_cast<const float*>(x.const_data_ptr());
        (void)value;
      },
      testing::KilledBySignal(SIGSEGV), "");
}

// More accesses than placeholders' common context has references to spare.
TEST(Pointer, ManyAccesses) {
  at::Tensor x = ToLazy(Iota({1}));
  for (int i = 0; i < 10000; ++i) {
    x = x.clone();
    ASSERT_EQ(Address(x)[0], 0);
  }
}

TEST(Pointer, ForeignMemoryIsUsedAsItLies) {
  float values[4] = {1, 2, 3, 4};
  at::Tensor x = at::from_blob(values, {4}, at::device(at::Device("lazy:0")));
  ExpectSame(x.add(1), Iota({4}).add(2));
  x.mul_(2);
  EXPECT_EQ(x.sum().item<float>(), 20);
  EXPECT_EQ(values[3], 8);
}

TEST(Pointer, StoragesMadeByPyTorchKeepTheirMemory) {
  c10::DataPtr memory = c10::GetAllocator(at::kPrivateUse1)->allocate(16);
  std::memcpy(memory.mutable_get(), Iota({4}).const_data_ptr(), 16);
  const c10::Storage storage(c10::make_storage_impl(c10::StorageImpl::use_byte_size_t(), 16, std::move(memory),
                                                    c10::GetAllocator(at::kPrivateUse1), true, at::Device("lazy:0")));
  at::Tensor x = at::empty({0}, at::device(Lazy()));
  x.set_(storage);
  ExpectSame(x.add(1), Iota({4}).add(1));
}

}  // namespace
}  // namespace torch_lazy::device
