// SPDX-License-Identifier: Apache-2.0
// Where the numbers that a CUDA graph draws begin: at an offset that each generator has for the capture. Until 2.11 a
// generator has one for all, from 2.12 on one per capture, and from 2.14 on it has none before it is first used.
#pragma once

#include <cstdint>
#include <mutex>

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <torch/headeronly/version.h>

namespace torch_lazy::torch_compat {

// `States` is what a CUDAGraph keeps of its generators, which only it may name.
#if TORCH_VERSION_MINOR < 12

template <typename States>
void SeekInCapture(const States& states, at::cuda::CaptureId_t, uint64_t offset) {
  for (const auto& [generator, increment] : states) generator->offset_intragraph_ = offset;
}

// Of a capture that has failed.
template <typename States>
void ForgetCapture(const States& states) {
  for (const auto& [generator, increment] : states) {
    generator->capturing_ = false;
    generator->offset_intragraph_ = 0;
  }
}

#else

template <typename States>
void SeekInCapture(const States& states, at::cuda::CaptureId_t capture, uint64_t offset) {
  if (states.empty()) {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    at::check_generator<at::CUDAGeneratorImpl>(generator)->philox_cuda_state(0);
  }
  for (const auto& [generator, increment] : states) {
    const std::lock_guard<std::mutex> lock(generator->capture_states_mutex_);
    const auto found = generator->capture_states_.find(capture);
    if (found != generator->capture_states_.end()) found->second->offset_intragraph_ = offset;
  }
}

// The CUDA graph forgets them when it dies.
template <typename States>
void ForgetCapture(const States&) {}

#endif

}  // namespace torch_lazy::torch_compat
