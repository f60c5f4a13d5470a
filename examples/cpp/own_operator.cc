// SPDX-License-Identifier: Apache-2.0
// Two operators of one's own, neither of which knows of the device.
//
// `running_max` has a kernel for the CPU. The device runs that kernel on its own memory, without a copy, when the call
// is made. `soft_clip` is made of PyTorch's operators. Those are recorded, and become one kernel with what is around
// them.
#include <torch/library.h>
#include <torch/torch.h>

#include <torch_lazy/torch_lazy.h>
#include <algorithm>
#include <iostream>

namespace {

using torch::Tensor;

Tensor RunningMax(const Tensor& x) {
  TORCH_CHECK(x.scalar_type() == torch::kFloat, "running_max: floats are wanted, not ", x.scalar_type());
  const Tensor from = x.contiguous();
  Tensor to = torch::empty_like(from);
  const float* const in = from.data_ptr<float>();
  float* const out = to.data_ptr<float>();
  for (int64_t i = 0; i < from.numel(); ++i) out[i] = i == 0 ? in[0] : std::max(out[i - 1], in[i]);
  return to;
}

Tensor SoftClip(const Tensor& x, double limit) { return (x / limit).tanh() * limit; }

TORCH_LIBRARY(example, library) {
  library.def("running_max(Tensor x) -> Tensor", torch::dispatch(c10::DispatchKey::CPU, RunningMax));
  library.def("soft_clip(Tensor x, float limit) -> Tensor", SoftClip);
}

// Calls them as any user of the operators does, by their names.
Tensor Compute(const Tensor& x) {
  static const auto running_max =
      c10::Dispatcher::singleton().findSchemaOrThrow("example::running_max", "").typed<Tensor(const Tensor&)>();
  static const auto soft_clip =
      c10::Dispatcher::singleton().findSchemaOrThrow("example::soft_clip", "").typed<Tensor(const Tensor&, double)>();
  return running_max.call(soft_clip.call(x.sin() * 3, 2.0)).exp();
}

}  // namespace

int main() {
  torch_lazy::SetOption("compile", "sync");  // each trace waits for its kernels, instead of going on without
  const Tensor x = torch::linspace(-3, 3, 1000);
  const Tensor expected = Compute(x);
  bool same = true;
  for (int i = 0; i < 3; ++i) same = same && Compute(x.to("lazy")).cpu().allclose(expected);
  std::cout << torch_lazy::Explain() << (same ? "the operators give on lazy what they give on cpu" : "results differ")
            << std::endl;
  return same ? 0 : 1;
}
