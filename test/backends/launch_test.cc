// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/launch.h"

#include <omp.h>

#include <atomic>

#include "backends/registry.h"
#include "base/metrics.h"
#include "test/backends/kernel.h"

namespace torch_lazy::backends {
namespace {

// Runs one kernel over `sizes`, each an instance, and expects each iteration of each to run once.
void CheckEachOnce(const std::vector<int64_t>& sizes, int64_t grain, double cost) {
  const codegen::Kernel kernel = CountFrom(5);
  const std::shared_ptr<Module> module = Get().Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true);
  ASSERT_TRUE(module->status().ok()) << module->status();
  std::vector<std::vector<int64_t>> numbers;
  for (const int64_t size : sizes) numbers.emplace_back(size);
  std::vector<void*> pointers;
  for (std::vector<int64_t>& list : numbers) pointers.push_back(list.data());
  std::vector<BoundInstance> instances;
  for (size_t k = 0; k < sizes.size(); ++k) {
    instances.push_back(Bind(module->Function(0), &pointers[k], sizes[k]));
    instances.back().grain = grain;
    instances.back().cost_per_iteration = cost;
  }
  EXPECT_TRUE(Get().Launch(instances).ok());
  for (size_t k = 0; k < sizes.size(); ++k) EXPECT_EQ(numbers[k], Counted(5, sizes[k])) << "instance " << k;
}

TEST(Launch, RunsEachIterationOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    omp_set_num_threads(threads);
    for (const double cost : {0.001, 3.7, 1000.0}) {
      for (const int64_t grain : {0, 1, 7, 512}) {
        CheckEachOnce({1000}, grain, cost);
        CheckEachOnce({0, 1, 5, 333, 0, 4097, 2}, grain, cost);
        CheckEachOnce(std::vector<int64_t>(300, 16), grain, cost);
      }
    }
  }
  omp_set_num_threads(2);
}

TEST(Launch, InsideAParallelRegionRunsOnTheCallingThread) {
  std::atomic<int> failures{0};
#pragma omp parallel num_threads(2)
  {
    if (omp_get_thread_num() == 0) {
      CheckEachOnce({5000}, 1, 1000);
    }
    if (testing::Test::HasFailure()) ++failures;
  }
  EXPECT_EQ(failures, 0);
}

TEST(Launch, GivesEachThreadItsScratchMemory) {
  const codegen::Kernel kernel = {"uses_scratch",
                                  "extern \"C\" void uses_scratch(void* const* b, const long* n, "
                                  "const double*, long begin, long end, void* s) {\n"
                                  "  for (long i = begin; i < end; ++i) {\n"
                                  "    long* w = (long*)s;\n"
                                  "    for (long j = 0; j < n[0]; ++j) w[j] = i;\n"
                                  "    long sum = 0;\n"
                                  "    for (long j = 0; j < n[0]; ++j) sum += w[j];\n"
                                  "    ((long*)b[0])[i] = sum;\n"
                                  "  }\n}\n"};
  const std::shared_ptr<Module> module = Get().Compile(absl::MakeConstSpan(&kernel, 1), /*wait=*/true);
  ASSERT_TRUE(module->status().ok()) << module->status();
  std::vector<int64_t> sums(200);
  void* pointer = sums.data();
  const int64_t length = 3000;
  BoundInstance instance = Bind(module->Function(0), &pointer, 200);
  instance.extents = absl::MakeConstSpan(&length, 1);
  instance.cost_per_iteration = 10000;
  instance.scratch_bytes = length * 8;
  EXPECT_TRUE(Get().Launch(absl::MakeConstSpan(&instance, 1)).ok());
  for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(sums[i], i * length);
}

TEST(Launch, IsCounted) {
  const int64_t before = base::Get(base::Counter::kKernelLaunches);
  CheckEachOnce({10, 10}, 1, 1);
  EXPECT_EQ(base::Get(base::Counter::kKernelLaunches), before + 1);
}

}  // namespace
}  // namespace torch_lazy::backends
