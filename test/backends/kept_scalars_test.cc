// SPDX-License-Identifier: Apache-2.0
// With a driver whose copies and events do what the test says.
#include "backends/cuda/kept_scalars.h"

#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace torch_lazy::backends {
namespace {

int num_copies = 0;
cuda::Result event_result = 0;  // of a query
double memory[8];
bool has_memory = true;

cuda::Driver ScriptedDriver() {
  cuda::Driver driver = {};
  driver.EventCreate = [](cuda::Event* event, unsigned) {
    *event = reinterpret_cast<cuda::Event>(8);
    return 0;
  };
  driver.EventRecord = [](cuda::Event, cuda::Stream) { return 0; };
  driver.EventQuery = [](cuda::Event) { return event_result; };
  driver.EventDestroy = [](cuda::Event) { return 0; };
  driver.GetErrorName = [](cuda::Result, const char** text) { return *text = "FAULT", 0; };
  driver.GetErrorString = [](cuda::Result, const char** text) { return *text = "a fault", 0; };
  driver.MemcpyHtoDAsync = [](cuda::DevicePointer to, const void* from, size_t size_bytes, cuda::Stream) {
    ++num_copies;
    std::memcpy(reinterpret_cast<void*>(to), from, size_bytes);
    return 0;
  };
  return driver;
}

class KeptScalarsTest : public testing::Test {
 protected:
  KeptScalarsTest() {
    num_copies = event_result = 0;
    has_memory = true;
  }
  bool IsFound(std::vector<double> scalars, const void* kernel = nullptr) {
    return kept_.Find(kernel, scalars).value() == reinterpret_cast<uint64_t>(memory);
  }
  void Note(std::vector<double> scalars, const void* kernel = nullptr) {
    EXPECT_TRUE(kept_.Note(kernel, scalars, nullptr).ok());
  }

  const cuda::Driver driver_ = ScriptedDriver();
  const CudaHost host_ = {[] { return 0; },
                          [](size_t) -> absl::StatusOr<void*> {
                            if (has_memory) return memory;
                            return absl::ResourceExhaustedError("no memory");
                          },
                          [](void*, size_t) {}, []() -> void* { return nullptr; }};
  KeptScalars kept_{driver_, host_};
};

TEST_F(KeptScalarsTest, ThoseGivenTwiceInARowStay) {
  Note({1, 2});
  Note({1, 3});
  EXPECT_EQ(num_copies, 0);
  Note({1, 3});
  EXPECT_EQ(num_copies, 1);
  EXPECT_TRUE(IsFound({1, 3}));
  EXPECT_EQ(memory[1], 3);
  EXPECT_FALSE(IsFound({1, 2}));
  EXPECT_FALSE(IsFound({1, 3, 0}));
  EXPECT_FALSE(IsFound({1, 3}, /*kernel=*/&driver_));
}

TEST_F(KeptScalarsTest, OthersNeverTakeTheirPlace) {
  Note({1}), Note({1});
  Note({2}), Note({2});
  EXPECT_EQ(num_copies, 1);
  EXPECT_TRUE(IsFound({1}));
  EXPECT_FALSE(IsFound({2}));
}

TEST_F(KeptScalarsTest, AreComparedBitByBit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Note({nan, 0.0}), Note({nan, 0.0});
  EXPECT_TRUE(IsFound({nan, 0.0}));
  EXPECT_FALSE(IsFound({nan, -0.0}));
}

// Another stream does not wait for the copy.
TEST_F(KeptScalarsTest, AreReadWhenTheirCopyIsDone) {
  Note({1}), Note({1});
  event_result = cuda::kNotReady;
  EXPECT_FALSE(IsFound({1}));
  event_result = 0;
  EXPECT_TRUE(IsFound({1}));
  event_result = cuda::kNotReady;
  EXPECT_TRUE(IsFound({1}));  // it is asked no more
}

TEST_F(KeptScalarsTest, AFaultIsNamedAndNumbersAreUploadedAgain) {
  Note({1}), Note({1});
  event_result = 700;
  const absl::Status status = kept_.Find(nullptr, {1}).status();
  EXPECT_EQ(status.message(), "CUDA error: a fault (cuEventQuery of numbers that stay: FAULT)");
  event_result = 0;
  EXPECT_TRUE(IsFound({1}));
}

TEST_F(KeptScalarsTest, WithoutMemoryTheyAreUploadedEachTime) {
  has_memory = false;
  Note({1}), Note({1});
  EXPECT_FALSE(IsFound({1}));
  EXPECT_EQ(num_copies, 0);
}

TEST_F(KeptScalarsTest, ManyDoNotStay) {
  const std::vector<double> many(65, 1.0);
  Note(many), Note(many);
  EXPECT_EQ(num_copies, 0);
}

}  // namespace
}  // namespace torch_lazy::backends
