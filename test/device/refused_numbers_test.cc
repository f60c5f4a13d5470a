// SPDX-License-Identifier: Apache-2.0
// A number that eager refuses is refused at the call, also when the same call was recorded with another number.
#include <functional>

#include <ATen/ops/full.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/softshrink.h>
#include <ATen/ops/where.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

struct Refusing {
  const char* name;
  at::ScalarType dtype;
  at::Scalar good, bad;
  std::function<at::Tensor(const at::Tensor&, const at::Scalar&)> call;
};

const Refusing kCalls[] = {
    {"fill_", at::kChar, 1, 1000, [](const at::Tensor& x, const at::Scalar& n) { return x.clone().fill_(n); }},
    {"fill_ of half", at::kHalf, 1, 1e6, [](const at::Tensor& x, const at::Scalar& n) { return x.clone().fill_(n); }},
    {"full", at::kChar, 1, 1000,
     [](const at::Tensor& x, const at::Scalar& n) { return at::full({3}, n, x.options()); }},
    {"masked_fill", at::kChar, 1, 1000,
     [](const at::Tensor& x, const at::Scalar& n) { return x.masked_fill(x.gt(0), n); }},
    {"masked_fill of half", at::kHalf, 1, -1e9,
     [](const at::Tensor& x, const at::Scalar& n) { return x.masked_fill(x.gt(0), n); }},
    {"clamp", at::kChar, 1, 1000, [](const at::Tensor& x, const at::Scalar& n) { return x.clamp_min(n.toLong()); }},
    {"where", at::kChar, 1, 1000,
     [](const at::Tensor& x, const at::Scalar& n) { return at::where(x.gt(0), x, n.toLong()); }},
    {"div", at::kInt, 2, 0, [](const at::Tensor& x, const at::Scalar& n) { return x.div(n.toLong(), "floor"); }},
    {"div by a tensor on the host", at::kInt, 2, 0,
     [](const at::Tensor& x, const at::Scalar& n) { return x.div(at::full({}, n, at::kInt), "floor"); }},
    {"remainder", at::kInt, 2, 0, [](const at::Tensor& x, const at::Scalar& n) { return x.remainder(n.toLong()); }},
    {"pow", at::kInt, 2, -1, [](const at::Tensor& x, const at::Scalar& n) { return x.pow(n.toLong()); }},
    {"fill_ with an imaginary number", at::kFloat, c10::complex<double>(1, 0), c10::complex<double>(1, 2),
     [](const at::Tensor& x, const at::Scalar& n) { return x.clone().fill_(n); }},
    {"addcmul by an imaginary number", at::kFloat, c10::complex<double>(1, 0), c10::complex<double>(1, 2),
     [](const at::Tensor& x, const at::Scalar& n) { return x.addcmul(x, x, n); }},
    {"clamp of truth", at::kBool, 1.5, 1e300, [](const at::Tensor& x, const at::Scalar& n) { return x.clamp_min(n); }},
    {"softshrink", at::kFloat, 0.5, -1, [](const at::Tensor& x, const at::Scalar& n) { return at::softshrink(x, n); }},
    {"huber_loss", at::kFloat, 0.5, -1,
     [](const at::Tensor& x, const at::Scalar& n) { return at::huber_loss(x, x.add(1), 1, n.toDouble()); }},
    {"renorm", at::kFloat, 0.5, -1,
     [](const at::Tensor& x, const at::Scalar& n) {
       return x.view({3, 1}).renorm(2, 0, n);
     }},
};

TEST(RefusedNumbers, AreRefusedAtTheCall) {
  for (const Refusing& refusing : kCalls) {
    const at::Tensor cpu = Iota({3}).to(refusing.dtype), lazy = ToLazy(cpu);
    EXPECT_ANY_THROW(refusing.call(cpu, refusing.bad)) << refusing.name;
    for (int i = 0; i < 3; ++i) {
      EXPECT_ANY_THROW(refusing.call(lazy, refusing.bad)) << refusing.name << ", after " << i << " good calls";
      ExpectSame(refusing.call(lazy, refusing.good), refusing.call(cpu, refusing.good));
    }
  }
}

}  // namespace
}  // namespace torch_lazy::device
