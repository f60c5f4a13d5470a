// SPDX-License-Identifier: Apache-2.0
// libtorch_lazy_cuda.so: what a generator of CUDA's tells of itself.
#include <ATen/cuda/CUDAGeneratorImpl.h>

// Whether the default generator of a device was seeded since this, or eager's recurrent nets, asked last.
extern "C" bool torch_lazy_cuda_was_seeded(int device) {
  const at::Generator& generator = at::cuda::detail::getDefaultCUDAGenerator(static_cast<c10::DeviceIndex>(device));
  return at::check_generator<at::CUDAGeneratorImpl>(generator)->reset_rnn_state();
}
