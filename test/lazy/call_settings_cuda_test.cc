// SPDX-License-Identifier: Apache-2.0
// Settings of a GPU's libraries belong to a call, and are put back for its run.
#include "lazy/ops/call_settings.h"

#include <functional>
#include <iostream>
#include <set>
#include <vector>

#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/headeronly/version.h>

namespace torch_lazy::lazy {
namespace {

using Setting = std::function<void(at::Context&)>;

void SetProducts(at::Context& context, at::Float32Precision precision) {
  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL, precision);
}

// LibTorch refuses what the CUDA that it was built with lacks.
[[maybe_unused]] bool IsTaken(const Setting& set) {
  try {
    set(at::globalContext());
    SetProducts(at::globalContext(), at::Float32Precision::NONE);
    return true;
  } catch (const c10::Error& error) {
    std::cout << error.what_without_backtrace() << std::endl;
    return false;
  }
}

// Each differs from the one before.
std::vector<Setting> Settings() {
  std::vector<Setting> settings = {
      [](at::Context&) {},
      [](at::Context& context) { SetProducts(context, at::Float32Precision::TF32); },
      [](at::Context& context) { context.setUserEnabledCuDNN(false); },
      [](at::Context& context) { context.setBenchmarkCuDNN(true); },
  };
#if TORCH_VERSION_MINOR >= 13
  settings.push_back([](at::Context& c) { c.setCuDNNDepthwiseKernel(at::CuDNNDepthwiseKernel::CUDNN); });
  settings.push_back([](at::Context& c) { c.setCuDNNDepthwiseKernel(at::CuDNNDepthwiseKernel::NATIVE); });
#endif
#if TORCH_VERSION_MINOR >= 15
  const Setting nine_of_bfloat16 = [](at::Context& context) { SetProducts(context, at::Float32Precision::BF16X9); };
  if (IsTaken(nine_of_bfloat16)) {
    settings.push_back(nine_of_bfloat16);
    settings.push_back([](at::Context& context) { SetProducts(context, at::Float32Precision::TF32); });
  }
#endif
  return settings;
}

TEST(CallSettings, EachIsAnotherPathAndIsPutBack) {
  at::Context& context = at::globalContext();
  std::vector<uint32_t> numbers;
  for (const Setting& set : Settings()) {
    set(context);
    numbers.push_back(CurrentSettings());
  }
  EXPECT_EQ(std::set<uint32_t>(numbers.begin(), numbers.end()).size(), numbers.size());
  for (const uint32_t number : numbers) {
    const UseSettings use(number);
    EXPECT_EQ(CurrentSettings(), number);
  }
  EXPECT_EQ(CurrentSettings(), numbers.back());
}

}  // namespace
}  // namespace torch_lazy::lazy
