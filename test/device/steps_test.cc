// SPDX-License-Identifier: Apache-2.0
// What is stored where a step of a program's loop ends.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

constexpr int64_t kNumbers = 1 << 20;
constexpr int64_t kBytes = 4 * kNumbers;

TEST(Steps, TheLastCallsTemporaryIsNotStored) {
  SetOption("compile", "sync");
  const at::Tensor w = ToLazy(at::zeros({kNumbers})), g = ToLazy(at::ones({kNumbers}));
  const auto root = [&] { return g.mul(4).sqrt(); };
  const auto step = [&] { w.add_(root()); };  // the root is alive until add_ has returned
  for (int i = 0; i < 6; ++i) step();
  CallOp<void>("sync");
  CallOp<void>("reset_metrics");
  const int64_t before = Metric("bytes_live");
  for (int i = 0; i < 3; ++i) step();
  CallOp<void>("sync");
  EXPECT_LT(Metric("bytes_peak"), before + kBytes);
  ExpectSame(w, at::zeros({kNumbers}).add(18));
  SetOption("compile", "async");
}

// The same step, waited for now and then: no new trace.
TEST(Steps, AWaitAtTheEndIsTheSameTrace) {
  SetOption("compile", "sync");
  const at::Tensor w = ToLazy(at::zeros({8})), g = ToLazy(at::ones({8}));
  at::Tensor loss;
  const auto step = [&] {
    loss = g.mul(w).sum();
    w.add_(g.mul(4).sqrt());
  };
  for (int i = 0; i < 6; ++i) step();
  CallOp<void>("sync");
  const int64_t before = Metric("trace_misses");
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(loss.item<float>(), 8 * 16);
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(w[0].item<float>(), 24);
  EXPECT_EQ(Metric("trace_misses"), before);
  SetOption("compile", "async");
}

}  // namespace
}  // namespace torch_lazy::device
