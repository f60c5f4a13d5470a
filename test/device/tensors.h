// SPDX-License-Identifier: Apache-2.0
// Shorthand for tests that compare the device with the CPU.
#pragma once

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>

#include "device/include/torch_lazy/torch_lazy.h"

namespace torch_lazy::device {

inline at::Device Lazy() { return at::Device("lazy"); }
inline at::Tensor ToLazy(const at::Tensor& tensor) { return tensor.to(Lazy()); }

inline at::Tensor Iota(c10::IntArrayRef sizes) {
  return at::arange(c10::multiply_integers(sizes), at::kFloat).reshape(sizes);
}

// Same bits, sizes and strides.
inline void ExpectSame(const at::Tensor& lazy, const at::Tensor& cpu) {
  ASSERT_TRUE(lazy.is_privateuseone());
  EXPECT_EQ(lazy.sizes(), cpu.sizes());
  EXPECT_EQ(lazy.strides(), cpu.strides());
  EXPECT_EQ(lazy.scalar_type(), cpu.scalar_type());
  EXPECT_TRUE(lazy.cpu().equal(cpu)) << lazy.cpu() << "\n!=\n" << cpu;
}

// torch.ops.torch_lazy.<name>()
template <class Result>
Result CallOp(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("torch_lazy::") + name).c_str(), "")
      .typed<Result()>()
      .call();
}

// 0 if nothing was counted.
inline int64_t Metric(const std::string& name) {
  const std::string metrics = CallOp<std::string>("metrics");
  const size_t at = metrics.find("\"" + name + "\"");
  return at == std::string::npos ? 0 : std::stoll(metrics.substr(metrics.find(':', at) + 1));
}

using torch_lazy::SetOption;

}  // namespace torch_lazy::device
