// SPDX-License-Identifier: Apache-2.0
#include "base/fingerprint.h"

#include <set>

#include "gtest/gtest.h"

namespace torch_lazy::base {
namespace {

// The published values of MurmurHash3_x64_128 with seed 0.
TEST(Fingerprint, IsMurmurHash3) {
  EXPECT_EQ(FingerprintOf("").ToString(), "00000000000000000000000000000000");
  EXPECT_EQ(FingerprintOf("hello").ToString(), "cbd8a7b341bd9b025b1e906a48ae1d19");
  EXPECT_EQ(FingerprintOf("The quick brown fox jumps over the lazy dog").ToString(),
            "e34bbc7bbc071b6c7a433ca9c49a9347");
}

TEST(Fingerprint, TellsZeroBytesApart) {
  std::set<std::string> seen;
  for (size_t size = 0; size < 40; ++size) seen.insert(FingerprintOf(std::string(size, '\0')).ToString());
  EXPECT_EQ(seen.size(), 40u);
}

}  // namespace
}  // namespace torch_lazy::base
