// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "test/device/tensors.h"

namespace torch_lazy::device {
namespace {

TEST(Name, LazyIsThisDevice) {
  EXPECT_EQ(at::Device("lazy").type(), at::kPrivateUse1);
  EXPECT_EQ(at::Device("lazy:0"), at::Device(at::kPrivateUse1, 0));
  EXPECT_FALSE(at::Device("lazy").has_index());
  EXPECT_EQ(at::Device("lazy:0").str(), "lazy:0");
}

TEST(Name, TensorsCarryIt) {
  const at::Tensor x = ToLazy(Iota({2, 2}));
  EXPECT_EQ(x.device(), at::Device("lazy:0"));
  EXPECT_TRUE(x.is_privateuseone());
  EXPECT_TRUE(x.to(Lazy()).is_same(x));
  std::ostringstream text;
  text << x;
  EXPECT_NE(text.str().find("lazyFloatType"), std::string::npos) << text.str();
}

TEST(Name, LibraryAnswersWithoutTensors) {
  CallOp<void>("sync");
  EXPECT_NE(CallOp<std::string>("metrics").find("\"calls_total\""), std::string::npos);
}

}  // namespace
}  // namespace torch_lazy::device
