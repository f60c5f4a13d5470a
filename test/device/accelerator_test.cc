// SPDX-License-Identifier: Apache-2.0
// Which device PyTorch takes for the accelerator, with CUDA beside ours.
#include <dlfcn.h>

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

// CUDA's allocator as it is once CUDA has been used, on a machine that need not have it.
class UsedCuda final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override { return c10::GetCPUAllocator()->allocate(size_bytes); }
  void copy_data(void* to, const void* from, size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

// A backward pass that adds gradients up, where the engine looks for streams.
double Gradient() {
  const at::Tensor x = at::ones({3}, at::device(Lazy())).set_requires_grad(true);
  x.mul(x).add(x.mul(2)).sum().backward();
  return x.grad().sum().item<double>();
}

bool IsOurs() { return at::accelerator::getAccelerator() == at::kPrivateUse1; }

TEST(AcceleratorDeathTest, IsOursOnceItHoldsATensor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto both = [] {
    const bool before = IsOurs();
    const at::Tensor x = at::ones({3}, at::device(Lazy()));
    const bool after = IsOurs() && at::accelerator::isAccelerator(at::kPrivateUse1);
    _exit(!before && after && Gradient() == 12 ? 0 : 1);
  };
  EXPECT_EXIT(both(), testing::ExitedWithCode(0), "");
}

TEST(AcceleratorDeathTest, IsCudaOnceCudaIsUsed) {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) GTEST_SKIP() << "PyTorch without CUDA";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto both = [] {
    const at::Tensor x = at::ones({3}, at::device(Lazy()));
    const bool before = IsOurs();
    c10::SetAllocator(c10::kCUDA, new UsedCuda, /*priority=*/255);
    const bool after = at::accelerator::getAccelerator() == at::kCUDA;
    _exit(before && after && Gradient() == 12 ? 0 : 1);
  };
  EXPECT_EXIT(both(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace torch_lazy::device
