// SPDX-License-Identifier: Apache-2.0
// When products of one size are tried by both libraries.
#include "lazy/libraries/tuned_product.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/flags.h"
#include "base/metrics.h"
#include "lazy/host/ledger.h"

namespace torch_lazy::lazy {
namespace {

int64_t Timed() { return base::Cell(base::Tally::kTunedProducts, "timed").load(); }
int64_t Undecided() { return base::Cell(base::Tally::kTunedProducts, "undecided").load(); }

class Product {
 public:
  Product()
      : product_(TunedProduct::For(GeometryOf(x_), GeometryOf(y_), GeometryOf(result_), /*deterministic=*/false)) {}
  bool is_tuned() const { return product_ != nullptr; }
  void Run(int times) {
    for (int i = 0; i < times; ++i) product_->Run(x_, y_, &result_);
  }

 private:
  const at::Tensor x_ = at::ones({192, 192}), y_ = at::ones({192, 192});
  at::Tensor result_ = at::empty({192, 192});
  TunedProduct* const product_;
};

TEST(TunedProduct, AnyRunMayBeTheFirstThatIsPaid) {
  ASSERT_TRUE(base::SetOption("cache_dir", testing::TempDir() + std::to_string(getpid())).ok());
  Account& account = AccountOf(Venture::kProducts);
  account.Spend(1e3);
  Product product;
  const auto supports = c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_is_mkldnn_bf16_supported", "");
  ASSERT_EQ(product.is_tuned(), supports.typed<bool()>().call());
  if (!product.is_tuned()) GTEST_SKIP() << "PyTorch gives oneDNN no products on this processor";
  product.Run(9);
  EXPECT_EQ(Timed(), 0);
  EXPECT_EQ(Undecided(), 8);  // a size that comes for the first time is none
  account.Save(2e3);
  product.Run(6);  // the sixteenth is not among them
  EXPECT_GT(Timed(), 0);
}

}  // namespace
}  // namespace torch_lazy::lazy
