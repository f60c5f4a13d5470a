// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/imag.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(Views, ShareTheStorage) {
  const at::Tensor x = ToLazy(Iota({4, 6}));
  for (const at::Tensor& view :
       {x.t(), x.view({6, 4}), x[1], x.slice(1, 1, 5, 2), x.unfold(1, 2, 2), x.expand({2, 4, 6}), x.diagonal(),
        x.unsqueeze(0), x.as_strided({2, 2}, {1, 6}, 3), x.detach()}) {
    EXPECT_TRUE(view.is_alias_of(x));
  }
  EXPECT_EQ(x[2].data_ptr(), static_cast<char*>(x.data_ptr()) + 2 * 6 * sizeof(float));
}

TEST(Views, ReadWhatEagersRead) {
  const at::Tensor cpu = Iota({4, 6}), x = ToLazy(cpu);
  ExpectSame(x.t(), cpu.t());
  ExpectSame(x.unfold(1, 3, 2), cpu.unfold(1, 3, 2));
  ExpectSame(x.slice(1, 1, 5, 2).t(), cpu.slice(1, 1, 5, 2).t());
  ExpectSame(x.as_strided({3, 3}, {2, 5}, 1), cpu.as_strided({3, 3}, {2, 5}, 1));
}

TEST(Views, WritesShowInTheBaseAndTheOtherWayRound) {
  at::Tensor cpu = Iota({4, 6}), x = ToLazy(cpu);
  const at::Tensor cpu_row = cpu[1], row = x[1];
  cpu.t()[2].mul_(10);
  x.t()[2].mul_(10);
  cpu_row.add_(100);
  row.add_(100);
  cpu.sub_(1);
  x.sub_(1);
  ExpectSame(x, cpu);
  ExpectSame(row, cpu_row);
}

TEST(Views, ConjugateAndNegativeBitsSurvive) {
  const at::Tensor cpu = at::randn({3, 4}, at::kComplexFloat), x = ToLazy(cpu);
  EXPECT_TRUE(x.conj().is_conj());
  EXPECT_TRUE(x.conj().t().is_conj());
  ExpectSame(x.conj().t(), cpu.conj().t());
  ExpectSame(x.conj().mul(x), cpu.conj().mul(cpu));
  const at::Tensor imag = at::view_as_real(cpu.conj().resolve_conj());
  ExpectSame(at::view_as_real(x.conj().resolve_conj()), imag);
  ExpectSame(at::imag(x.conj()).add(1), at::imag(cpu.conj()).add(1));
  ExpectSame(at::view_as_complex(ToLazy(Iota({3, 2}))), at::view_as_complex(Iota({3, 2})));
}

TEST(Views, OutOfBoundsIsRefused) {
  const at::Tensor x = ToLazy(Iota({4}));
  EXPECT_THROW(x.as_strided({5}, {1}), c10::Error);
  EXPECT_THROW(x.view({3}), c10::Error);
}

}  // namespace
}  // namespace torch_lazy::device
