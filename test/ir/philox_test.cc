// SPDX-License-Identifier: Apache-2.0
#include "ir/philox.h"

#include <vector>

#include "gtest/gtest.h"

namespace torch_lazy::ir {
namespace {

using Four = std::array<uint32_t, 4>;

// The known answers of the generator's authors (Random123, kat_vectors).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox(0, 0, 0), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~0ull, ~0ull, ~0ull), (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// A launch, thread by thread: each draws four numbers at a time, in the order in which it comes to
// its elements.
std::vector<uint32_t> DrawAll(const PhiloxLaunch& launch, int64_t count) {
  std::vector<uint32_t> numbers(count);
  for (int64_t thread = 0; thread < launch.threads; ++thread) {
    uint64_t drawn = launch.offset / 4;
    Four four = {};
    const auto draw = [&] { four = Philox(drawn++, thread, launch.seed); };
    if (launch.width == 1) {
      for (int64_t first = thread; first < count; first += 4 * launch.threads) {
        draw();
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t at = first + k * launch.threads;
          if (at < count) numbers[at] = four[k];
        }
      }
      continue;
    }
    for (int64_t first = thread * launch.width; first < count; first += launch.threads * launch.width) {
      for (int64_t k = 0; k < launch.width; ++k) {
        if (k % 4 == 0) draw();
        numbers[first + k] = four[k % 4];
      }
    }
  }
  return numbers;
}

TEST(Philox, KnowsWhatALaunchDraws) {
  for (const int64_t width : {1, 2, 4, 8}) {
    const int64_t count = width == 1 ? 997 : 8 * 83;  // five rounds and a part
    const PhiloxLaunch launch = {0x123456789abcdef0, 8, 16 * (width == 1 ? 3 : 1), width};
    const std::vector<uint32_t> numbers = DrawAll(launch, count);
    for (int64_t k = 0; k < count; ++k) ASSERT_EQ(PhiloxAt(launch, k), numbers[k]) << width << " " << k;
  }
}

}  // namespace
}  // namespace torch_lazy::ir
