// SPDX-License-Identifier: Apache-2.0
// Heads that share keys, as attention on a GPU is given them: without the copies, and the same numbers.
#include "device/eager_overrides/shared_heads.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

using at::Tensor;

constexpr int64_t kShared = 2, kTimes = 3, kLength = 7, kWidth = 8;

Tensor Repeated(const Tensor& x) {
  return x.unsqueeze(2)
      .expand({x.size(0), kShared, kTimes, kLength, kWidth})
      .reshape({x.size(0), kShared * kTimes, kLength, kWidth});
}

struct Operands {
  Tensor query, keys, values, mask;
};

// Calls that are new run at once, to learn what they return.
void Learn(const Tensor& x) {
  Tensor copy = Repeated(x);
  copy.add_(1);
  copy.clone().zero_();
  copy.cpu();
}

Operands MakeOperands(int64_t batch, at::Device device) {
  at::manual_seed(0);
  const auto normal = [&](at::IntArrayRef sizes) { return at::randn(sizes).to(device); };
  const std::vector<int64_t> shared = {batch, kShared, kLength, kWidth};
  const Operands made = {normal({batch, kShared * kTimes, 1, kWidth}), normal(shared), normal(shared),
                         normal({1, 1, 1, kLength}).expand({batch, kShared * kTimes, 1, kLength})};
  Learn(made.keys);
  made.values.add_(0).cpu();
  return made;
}

// Attention as CUDA's would be called.
Tensor Attend(const Operands& o, const std::optional<Tensor>& mask) {
  const Tensor keys = Repeated(o.keys), values = Repeated(o.values);
  const std::optional<SharedHeads> shared = BeforeCopies(o.query, keys, values, mask);
  EXPECT_TRUE(shared.has_value());
  if (!shared) return o.query;
  EXPECT_EQ(shared->key.sizes(), at::IntArrayRef({o.keys.size(0) * kShared, 1, kLength, kWidth}));
  EXPECT_TRUE(shared->key.is_alias_of(o.keys) && shared->value.is_alias_of(o.values));
  return at::scaled_dot_product_attention(shared->query, shared->key, shared->value, shared->bias)
      .reshape(o.query.sizes());
}

Tensor Expected(const Operands& o, const std::optional<Tensor>& mask) {
  return at::scaled_dot_product_attention(o.query, Repeated(o.keys), Repeated(o.values), mask);
}

bool Fires(const Tensor& query, const Tensor& keys, const Tensor& values, const std::optional<Tensor>& mask = {}) {
  return BeforeCopies(query, keys, values, mask).has_value();
}

TEST(SharedHeads, AttendWithoutCopies) {
  for (const int64_t batch : {1, 2}) {
    const Operands cpu = MakeOperands(batch, at::kCPU), lazy = MakeOperands(batch, Lazy());
    for (const bool masks : {false, true}) {
      const auto mask = [&](const Operands& o) { return masks ? std::optional(o.mask) : std::nullopt; };
      EXPECT_TRUE(at::allclose(Attend(lazy, mask(lazy)).cpu(), Expected(cpu, mask(cpu)), 1e-5, 1e-5));
    }
  }
}

TEST(SharedHeads, AreThoseOfPendingCopiesAlone) {
  const Operands o = MakeOperands(1, Lazy());
  const Tensor keys = Repeated(o.keys), values = Repeated(o.values);
  EXPECT_TRUE(Fires(o.query, keys, values));
  EXPECT_FALSE(Fires(o.query, keys, values.clone()));
  o.values.add_(0);  // the copy is of what was there
  EXPECT_FALSE(Fires(o.query, keys, values));
  const Tensor anew = Repeated(o.values);
  EXPECT_TRUE(Fires(o.query, keys, anew));
  anew.add_(1);
  EXPECT_FALSE(Fires(o.query, keys, anew));
  anew.cpu();
  EXPECT_FALSE(Fires(o.query, keys, anew));
}

TEST(SharedHeads, HaveOneQueryEachAndOneMask) {
  const Operands o = MakeOperands(1, Lazy());
  const Tensor keys = Repeated(o.keys), values = Repeated(o.values);
  const Tensor queries = at::zeros({1, kShared * kTimes, 2, kWidth}, Lazy());
  EXPECT_FALSE(Fires(queries, keys, values));
  EXPECT_TRUE(Fires(o.query, keys, values, o.mask));
  EXPECT_FALSE(Fires(o.query, keys, values, o.mask.clone()));
  const Operands two = MakeOperands(2, Lazy());
  EXPECT_FALSE(Fires(two.query, Repeated(two.keys), Repeated(two.values),
                     at::zeros({2, 1, 1, kLength}, Lazy()).expand({2, kShared * kTimes, 1, kLength})));
}

TEST(SharedHeads, AreNoneWhereHeadsAreNotRepeated) {
  const Operands o = MakeOperands(1, Lazy());
  const Tensor query = at::zeros({1, kShared, 1, kWidth}, Lazy());
  EXPECT_FALSE(Fires(query, o.keys.clone(), o.values.clone()));
  // Heads in turns: the first, the second, the first.
  const auto in_turns = [](const Tensor& x) {
    return x.unsqueeze(1).expand({1, kTimes, kShared, kLength, kWidth}).reshape({1, kTimes * kShared, kLength, kWidth});
  };
  EXPECT_FALSE(Fires(o.query, in_turns(o.keys), in_turns(o.values)));
}

}  // namespace
}  // namespace torch_lazy::device
