// SPDX-License-Identifier: Apache-2.0
// What eager refuses is refused at the call, with eager's type, and the device goes on.
#include <cmath>
#include <functional>

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

struct Refused {
  const char* name;
  std::function<void(at::Device)> call;
};

at::Tensor On(at::Device device, c10::IntArrayRef sizes) { return Iota(sizes).to(device); }

const Refused kRefused[] = {
    {"shapes that do not broadcast",
     [](at::Device d) {
       On(d, {2, 3}).add(On(d, {4}));
     }},
    {"inner sizes",
     [](at::Device d) {
       On(d, {2, 3}).mm(On(d, {2, 3}));
     }},
    {"inner sizes of linear",
     [](at::Device d) {
       at::linear(On(d, {2, 3}), On(d, {5, 4}));
     }},
    {"dimension out of range",
     [](at::Device d) {
       On(d, {2, 3}).sum(2);
     }},
    {"negative size",
     [](at::Device d) {
       On(d, {2, 3}).view({-2, 3});
     }},
    {"result type cannot be cast", [](at::Device d) { On(d, {2}).to(at::kInt).add_(On(d, {2})); }},
    {"floating factor of integers", [](at::Device d) { On(d, {2}).to(at::kInt).mul_(2).mul_(0.5); }},
    {"floating host tensor, integers", [](at::Device d) { On(d, {2}).to(at::kInt).mul_(2).mul_(at::ones({})); }},
    {"floating alpha, integers",
     [](at::Device d) {
       const at::Tensor x = On(d, {2}).to(at::kInt);
       x.add(x).add(x, 0.5);
     }},
    {"dtypes differ",
     [](at::Device d) {
       On(d, {2, 2}).mm(On(d, {2, 2}).to(at::kDouble));
     }},
    {"in place on a smaller tensor",
     [](at::Device d) {
       On(d, {3}).add_(On(d, {2, 3}));
     }},
    {"overlapping output",
     [](at::Device d) {
       at::Tensor out = On(d, {2, 3});
       at::exp_out(out, On(d, {2, 3}));
       out = On(d, {1, 3}).expand({2, 3});
       at::exp_out(out, On(d, {2, 3}));
     }},
    {"overlapping write",
     [](at::Device d) {
       On(d, {1, 3}).expand({4, 3}).mul_(2);
     }},
    {"write over its own transpose",
     [](at::Device d) {
       at::Tensor x = On(d, {3, 3});
       x.add_(x.t());
     }},
    {"write over its own element",
     [](at::Device d) {
       at::Tensor x = On(d, {1});
       x.add_(x[0]);
     }},
    {"write to a part of what is read",
     [](at::Device d) {
       On(d, {4}).narrow(0, 1, 3).add_(On(d, {4}).narrow(0, 0, 3));  // the same geometries on two storages
       const at::Tensor x = On(d, {4});
       x.narrow(0, 1, 3).add_(x.narrow(0, 0, 3));
     }},
    {"output that is an input and too small",
     [](at::Device d) {
       at::Tensor x = On(d, {3});
       at::add_out(x, x, On(d, {2, 3}));
     }},
    {"a number that does not fit", [](at::Device d) { On(d, {2}).to(at::kByte).fill_(3).fill_(300); }},
    {"a number that does not fit, floating", [](at::Device d) { On(d, {2}).clone().fill_(3.0).fill_(1e300); }},
    {"integers divided by zero",
     [](at::Device d) {
       const at::Tensor x = On(d, {2}).to(at::kInt);
       for (const int64_t divisor : {2, 0}) x.remainder(divisor);
     }},
    {"source that is the destination",
     [](at::Device d) {
       at::Tensor x = On(d, {2, 3});
       const at::Tensor index = On(d, {2}).to(at::kLong);
       x.index_add_(0, index, On(d, {2, 3})).index_add_(0, index, x);
     }},
    {"truth value as a factor",
     [](at::Device d) {
       const at::Tensor x = On(d, {2}).to(at::kInt);
       x.add(x, 1).add(x, true);
     }},
    {"truth values divided by zero",
     [](at::Device d) {
       const at::Tensor x = On(d, {2}).to(at::kBool);
       for (const int64_t divisor : {2, 0}) x.remainder(divisor);
     }},
    {"negative power of integers",
     [](at::Device d) {
       const at::Tensor x = On(d, {2}).to(at::kInt);
       for (const int64_t exponent : {2, -1}) x.pow(exponent);
     }},
    {"a number out of the operator's range",
     [](at::Device d) {
       const at::Tensor x = On(d, {2, 3});
       for (const double most : {1.0, -1.0}) x.renorm(2, 0, most);
     }},
    {"range of a number without end", [](at::Device d) { at::arange(0, NAN, at::device(d)); }},
    {"sizes of cat",
     [](at::Device d) {
       at::cat({On(d, {2, 3}), On(d, {2, 4})}, 0);
     }},
};

// The dynamic type of what `call` throws; empty if it does not.
std::string TypeThrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return typeid(error).name();
  }
  return "";
}

TEST(Errors, AsEagersAtTheCall) {
  for (const Refused& refused : kRefused) {
    const std::string eager = TypeThrown([&] { refused.call(at::kCPU); });
    ASSERT_NE(eager, "") << refused.name;
    EXPECT_EQ(TypeThrown([&] { refused.call(Lazy()); }), eager) << refused.name;
    EXPECT_EQ(TypeThrown([&] { refused.call(Lazy()); }), eager) << refused.name << ", the second time";
    ExpectSame(On(Lazy(), {3}).add(1), Iota({3}).add(1));
  }
}

TEST(Errors, PendingWorkSurvives) {
  at::Tensor x = ToLazy(Iota({4}));
  x.add_(1);
  const at::Tensor y = x.mul(2);
  EXPECT_THROW(y.add(ToLazy(Iota({3}))), c10::Error);
  x.sub_(1);
  ExpectSame(y, Iota({4}).add(1).mul(2));
  ExpectSame(x, Iota({4}));
}

TEST(Errors, MixedDevices) {
  const at::Tensor lazy = ToLazy(Iota({3})), cpu = Iota({3});
  EXPECT_THROW(lazy.add(cpu), c10::Error);
  EXPECT_THROW(cpu.add(lazy), c10::Error);
  EXPECT_THROW(lazy.view({3, 1}).mm(cpu.view({1, 3})), c10::Error);
  at::Tensor out = at::empty({0});
  EXPECT_THROW(at::index_select_out(out, lazy, 0, ToLazy(Iota({2}).to(at::kLong))), c10::Error);
  EXPECT_THROW(Iota({1})[0].add_(lazy[0]), c10::Error);
  ExpectSame(lazy.add(Iota({1})[0]), cpu.add(Iota({1})[0]));  // a number on the host is no other device
}

// Autograd refuses them; without gradients too, where calls pass it by.
TEST(Errors, UndefinedOperands) {
  for (const bool grad : {true, false}) {
    const at::AutoGradMode mode(grad);
    at::Tensor lazy = ToLazy(Iota({3}));
    for (int k = 0; k < 3; ++k) {
      lazy.add_(1);
      EXPECT_THROW(lazy.sub_(at::Tensor()), c10::Error) << grad << k;
      EXPECT_THROW(lazy.mul(at::Tensor()), c10::Error) << grad << k;
    }
    ExpectSame(lazy, Iota({3}).add(3));
  }
}

// As on every eager device, what reads its operand as a number takes one of any device.
TEST(Errors, HostTensorFilledWithANumberOfTheDevice) {
  at::Tensor cpu = Iota({3});
  EXPECT_TRUE(cpu.fill_(ToLazy(Iota({4}))[3]).equal(at::full({3}, 3.0)));
  cpu.index_fill_(0, at::ones({1}, at::kLong), ToLazy(Iota({4}))[2]);
  EXPECT_TRUE(cpu.equal(at::tensor({3.0f, 2.0f, 3.0f})));
  EXPECT_THROW(cpu.masked_fill_(at::ones({3}, at::kBool), ToLazy(Iota({4}))[2]), c10::Error);
}

}  // namespace
}  // namespace torch_lazy::device
