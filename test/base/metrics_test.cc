// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <chrono>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace torch_lazy::base {
namespace {

using testing::HasSubstr;

TEST(Metrics, AreAJsonObject) {
  ResetMetrics();
  Count(Counter::kCallsTotal, 7);
  Count(Counter::kCompileSeconds, 1'500'000'000);
  Count(Tally::kCuts, "op cap");
  Count(Tally::kCuts, "item");
  Count(Tally::kCuts, "item");
  const std::string json = MetricsJson();
  EXPECT_THAT(json, testing::StartsWith("{\"calls_total\": 7, \"calls_compiled\": 0, "));
  EXPECT_THAT(json, HasSubstr("\"compile_seconds\": 1.5,"));
  EXPECT_THAT(json, HasSubstr("\"cuts\": {\"item\": 2, \"op cap\": 1}}"));
}

TEST(Metrics, CountTheTimeOfAScope) {
  ResetMetrics();
  {
    const CountTime time(Counter::kRunSeconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(Get(Counter::kRunSeconds), 0);
  }
  EXPECT_GE(Get(Counter::kRunSeconds), 2'000'000);
}

TEST(Metrics, EscapeNames) {
  Count(Tally::kSyncs, "a \"b\"\n");
  EXPECT_THAT(MetricsJson(), HasSubstr("\"a \\\"b\\\" \": 1"));
}

TEST(Metrics, KeepGaugesAtAReset) {
  Count(Counter::kBytesLive, 100);
  RaiseTo(Counter::kBytesPeak, 300);
  RaiseTo(Counter::kBytesPeak, 200);
  EXPECT_EQ(Get(Counter::kBytesPeak), 300);
  Count(Counter::kTracesRun);
  std::atomic<int64_t>& cell = Cell(Tally::kCallsRecordedByOp, "aten::mm");
  ++cell;
  ResetMetrics();
  EXPECT_EQ(Get(Counter::kTracesRun), 0);
  EXPECT_EQ(Get(Counter::kBytesLive), 100);
  EXPECT_EQ(Get(Counter::kBytesPeak), 100);
  EXPECT_EQ(Get(Tally::kCallsRecordedByOp, "aten::mm"), 0);
  ++cell;
  EXPECT_EQ(Get(Tally::kCallsRecordedByOp, "aten::mm"), 1);
}

TEST(Metrics, CountFromManyThreads) {
  ResetMetrics();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) {
        Count(Counter::kTraceHits);
        Count(Tally::kSyncs, "item");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get(Counter::kTraceHits), 4000);
  EXPECT_EQ(Get(Tally::kSyncs, "item"), 4000);
}

}  // namespace
}  // namespace torch_lazy::base
