// SPDX-License-Identifier: Apache-2.0
// Replayed functions in C++. The rest is tested from Python (test/runtime/replay_test.py).
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "device/include/torch_lazy/torch_lazy.h"
#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(Replay, AFunctionRunsNoMoreOnceItIsKnown) {
  int runs = 0;
  const Replayable function = make_replayable([&](const Tensors& in) {
    ++runs;
    return Tensors{in[0].mul(in[1]).add(1), in[0].sum()};
  });
  for (int k = 0; k < 8; ++k) {
    const at::Tensor x = at::full({3, 4}, k), y = at::full({4}, k + 1);
    const Tensors results = function({ToLazy(x), ToLazy(y)});
    ExpectSame(results[0], x.mul(y).add(1));
    ExpectSame(results[1], x.sum());
  }
  EXPECT_LE(runs, 4);  // the first ones learn shapes
}

TEST(Replay, AStepThatUpdatesWhatItHasCaptured) {
  int runs = 0;
  const at::Tensor weight = ToLazy(at::zeros({4}));
  const Replayable step = make_replayable([&](const Tensors& in) {
    ++runs;
    weight.add_(in[0]);
    return Tensors{weight.square().sum()};
  });
  at::Tensor expected = at::zeros({4});
  for (int k = 0; k < 10; ++k) {
    const at::Tensor x = at::full({4}, k);
    expected.add_(x);
    const int64_t version = weight._version();
    ExpectSame(step({ToLazy(x)})[0], expected.square().sum());
    EXPECT_EQ(weight._version(), version + 1);
  }
  ExpectSame(weight, expected);
  EXPECT_LE(runs, 4);
}

TEST(Replay, AnExceptionLeavesNothingBehind) {
  bool fails = true;
  const Replayable function = make_replayable([&](const Tensors& in) {
    if (fails) throw std::runtime_error("no");
    return Tensors{in[0].neg()};
  });
  const at::Tensor x = at::ones({3});
  EXPECT_THROW(function({ToLazy(x)}), std::runtime_error);
  fails = false;
  for (int k = 0; k < 4; ++k) ExpectSame(function({ToLazy(x)})[0], x.neg());
}

}  // namespace
}  // namespace torch_lazy::device
