// SPDX-License-Identifier: Apache-2.0
// Settings that are new in a version, and decide what a GPU computes.
#pragma once

#include <cstdint>

#include <ATen/Context.h>
#include <torch/headeronly/version.h>

namespace torch_lazy::torch_compat {

inline constexpr int kNewGpuSettingsBits = 3;

// Those in force, as a number of so many bits: from 2.13 on which kernel does depthwise convolutions, from 2.15 on
// whether products are made of nine of bfloat16.
inline uint32_t NewGpuSettings([[maybe_unused]] const at::Context& context) {
  uint32_t settings = 0;
#if TORCH_VERSION_MINOR >= 13
  settings |= static_cast<uint32_t>(context.cudnnDepthwiseKernel()) << 1;
#endif
#if TORCH_VERSION_MINOR >= 15
  settings |= context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::BF16X9;
#endif
  return settings;
}

// After TF32 has been set.
inline void SetNewGpuSettings([[maybe_unused]] at::Context& context, [[maybe_unused]] uint32_t settings) {
#if TORCH_VERSION_MINOR >= 13
  context.setCuDNNDepthwiseKernel(static_cast<at::CuDNNDepthwiseKernel>(settings >> 1));
#endif
#if TORCH_VERSION_MINOR >= 15
  if ((settings & 1) != 0) {
    context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL, at::Float32Precision::BF16X9);
  }
#endif
}

}  // namespace torch_lazy::torch_compat
