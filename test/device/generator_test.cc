// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randperm.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

at::Generator Make(const at::Device& device, uint64_t seed) {
  at::Generator generator = at::globalContext().getAcceleratorHooksInterface(at::kPrivateUse1).getNewGenerator(0);
  if (device.is_cpu()) generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(seed);
  return generator;
}

TEST(Generator, SameSeedSameNumbersAsTheCpu) {
  std::vector<at::Tensor> drawn[2];
  for (const bool lazy : {false, true}) {
    at::manual_seed(7);
    const at::TensorOptions options = at::device(lazy ? Lazy() : at::Device("cpu"));
    std::vector<at::Tensor>& out = drawn[lazy];
    out.push_back(at::rand({33}, options));
    out.push_back(at::randn({16, 3}, options));
    out.push_back(at::randperm(10, options));
    out.push_back(at::empty({9}, options).uniform_(-1, 1));
    out.push_back(std::get<0>(at::native_dropout(at::rand({50}, options), 0.5, true)));
    out.push_back(at::bernoulli(at::rand({50}, options)));
  }
  for (size_t i = 0; i < drawn[0].size(); ++i) {
    EXPECT_TRUE(drawn[1][i].cpu().equal(drawn[0][i])) << "draw " << i;
  }
}

TEST(Generator, SharesTheCpusDefaultEngine) {
  at::manual_seed(3);
  const at::Tensor first = at::rand({5}), second = at::rand({5});
  at::manual_seed(3);
  const at::Tensor on_cpu = at::rand({5}), on_lazy = at::rand({5}, at::device(Lazy()));
  EXPECT_TRUE(on_cpu.equal(first));
  EXPECT_TRUE(on_lazy.cpu().equal(second));
}

TEST(Generator, OnesOwnIsIndependent) {
  at::manual_seed(1);
  const at::Tensor expected = at::rand({4}, Make(at::Device("cpu"), 11));
  const at::Tensor drawn = at::rand({4}, Make(Lazy(), 11), at::device(Lazy()));
  EXPECT_TRUE(drawn.cpu().equal(expected));
}

TEST(Generator, OfAnotherDeviceIsRefused) {
  EXPECT_THROW(at::empty({4}, at::device(Lazy())).normal_(0, 1, Make(at::Device("cpu"), 1)), c10::Error);
  EXPECT_THROW(at::empty({4}).normal_(0, 1, Make(Lazy(), 1)), c10::Error);
}

TEST(Generator, StateGoesBackAndForth) {
  at::Generator generator = Make(Lazy(), 5);
  EXPECT_EQ(generator.device(), at::Device("lazy:0"));
  EXPECT_EQ(generator.current_seed(), 5u);
  const at::Tensor state = generator.get_state();
  const at::Tensor first = at::rand({4}, generator, at::device(Lazy()));
  generator.set_state(state);
  EXPECT_TRUE(at::rand({4}, generator, at::device(Lazy())).cpu().equal(first.cpu()));
  const at::Generator copy = generator.clone();
  EXPECT_TRUE(at::rand({4}, copy, at::device(Lazy())).cpu().equal(at::rand({4}, generator, at::device(Lazy())).cpu()));
}

}  // namespace
}  // namespace torch_lazy::device
