// SPDX-License-Identifier: Apache-2.0
// Samples of given probabilities: ATen's own calls, of which the one that draws runs at once and the others are
// recorded.
//
// What is drawn depends on sizes alone, so the work that the probabilities wait for stays pending. Whether they are
// probabilities is found when the trace runs, as on CUDA. A program that catches the error sees two differences from
// the CPU. The error comes from whoever waits, and not from the call. The generator has moved on by then, and eager's
// has not.
#include <cmath>

#include <ATen/core/Tensor.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/multinomial_ops.h>
#include <ATen/ops/topk.h>

#include "device/eager_overrides/boxed.h"
#include "device/eager_overrides/kernels.h"
#include "device/fork.h"
#include "lazy/calls/device_of_call.h"
#include "lazy/trace/storage.h"
#include "lazy/trace/thread_trace.h"

namespace torch_lazy::device {
namespace {

using Generator = std::optional<at::Generator>;

constexpr int64_t kMostOutcomes = 1 << 24;  // as ATen

// Several samples with replacement are drawn by the values. What eager refuses whatever the values are, it refuses in
// its own words. Where calls run at once, one call is faster than a dozen.
bool IsRecorded(const at::Tensor& self, int64_t num_samples, bool replacement) {
  if (lazy::LazyStorageImpl::Of(self) == nullptr || !self.is_floating_point() || self.numel() == 0) return false;
  if (self.dim() < 1 || self.dim() > 2 || self.size(-1) > kMostOutcomes) return false;
  if (num_samples != 1 && (replacement || num_samples < 1 || num_samples > self.size(-1))) return false;
  return !lazy::CallsRunAtOnce();
}

void CheckLater(const at::Tensor& self) {
  at::_assert_async(self.min().ge(0).bitwise_and(self.max().lt(INFINITY)),
                    "probability tensor contains either `inf`, `nan` or element < 0");
  const at::Tensor is_nothing = self.dim() == 1 ? self.sum().eq(0) : self.sum(1).eq(0).any();
  at::_assert_async(is_nothing.bitwise_not(), "invalid multinomial distribution (sum of probabilities <= 0)");
}

// The outcomes' times of arrival, inverted: those with the greatest are the samples.
at::Tensor Race(const at::Tensor& self, const Generator& generator) {
  return self.div(at::empty_like(self).exponential_(1, generator));
}

at::Tensor Multinomial(const at::Tensor& self, int64_t num_samples, bool replacement, Generator generator) {
  CheckFork();
  const lazy::OnDevice on(lazy::DeviceOf(self));
  if (!IsRecorded(self, num_samples, replacement))
    return CallBoxed<at::_ops::multinomial>(self, num_samples, replacement, generator);
  CheckLater(self);
  const at::Tensor race = Race(self, generator);
  return num_samples == 1 ? race.argmax(-1, /*keepdim=*/true) : std::get<1>(race.topk(num_samples));
}

at::Tensor& MultinomialOut(const at::Tensor& self, int64_t num_samples, bool replacement, Generator generator,
                           at::Tensor& out) {
  CheckFork();
  const lazy::OnDevice on(lazy::DeviceOf(self));
  const bool takes_out =
      lazy::LazyStorageImpl::Of(out) != nullptr && out.device() == self.device() && out.scalar_type() == at::kLong;
  if (!takes_out || !IsRecorded(self, num_samples, replacement)) {
    static const lazy::Op& op = lazy::OpOf(c10::Dispatcher::singleton().findSchemaOrThrow("aten::multinomial", "out"));
    torch::jit::Stack stack = {self, num_samples, replacement, generator, out};
    lazy::Call(op, &stack);
    return out;
  }
  c10::DimVector sizes(self.sizes());
  sizes.back() = num_samples;
  out.resize_(sizes);
  CheckLater(self);
  const at::Tensor race = Race(self, generator);
  if (num_samples == 1) return at::argmax_out(out, race, -1, /*keepdim=*/true);
  at::Tensor values = at::empty(sizes, self.options());
  at::topk_out(values, out, race, num_samples);
  return out;
}

}  // namespace

void RegisterMultinomial(torch::Library& aten) {
  aten.impl("multinomial", TORCH_FN(Multinomial));
  aten.impl("multinomial.out", TORCH_FN(MultinomialOut));
}

}  // namespace torch_lazy::device
