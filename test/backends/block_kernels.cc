// SPDX-License-Identifier: Apache-2.0
#include "test/backends/block_kernels.h"

#include <algorithm>
#include <deque>

namespace torch_lazy::backends {

void CheckScale(BlockMemory memory, const std::vector<int64_t>& sizes) {
  const auto module = CompileBlockKernels(memory.backend, {ScaleKernel()});
  ASSERT_TRUE(module->status().ok());
  std::deque<DeviceArray<float>> x, y;
  std::deque<std::vector<void*>> buffers;
  std::deque<double> scalars;
  std::deque<int64_t> extents;
  std::vector<BoundInstance> instances;
  for (size_t k = 0; k < sizes.size(); ++k) {
    std::vector<float> values;
    for (int64_t i = 0; i < sizes[k]; ++i) values.push_back(static_cast<float>(i % 1000));
    x.emplace_back(memory, values);
    y.emplace_back(memory, std::vector<float>(sizes[k], -1.0f));
    buffers.push_back({x.back().data(), y.back().data()});
    scalars.push_back(2.0 + static_cast<double>(k));
    extents.push_back(static_cast<int64_t>(7 * k));
    BoundInstance& instance = instances.emplace_back();
    instance.function = module->Function(0);
    instance.buffers = buffers.back();
    instance.scalars = absl::MakeConstSpan(&scalars.back(), 1);
    instance.extents = absl::MakeConstSpan(&extents.back(), 1);
    instance.iterations = sizes[k];
  }
  EXPECT_TRUE(memory.backend.Launch(instances).ok());
  for (size_t k = 0; k < sizes.size(); ++k) {
    const std::vector<float> values = y[k].values();
    for (int64_t i = 0; i < sizes[k]; ++i) {
      ASSERT_EQ(values[i], static_cast<float>(2 + k) * static_cast<float>(i % 1000) + 7.0f * k)
          << "instance " << k << ", element " << i;
    }
  }
}

void CheckRowSums(BlockMemory memory, int64_t rows, int64_t columns, bool many) {
  const auto module = CompileBlockKernels(memory.backend, {RowSumKernel(), ScaleKernel()});
  ASSERT_TRUE(module->status().ok());
  std::vector<float> values;
  for (int64_t i = 0; i < rows * columns; ++i) values.push_back(static_cast<float>(i % 17 - 5));
  DeviceArray<float> x(memory, values), sums(memory, std::vector<float>(rows, -1.0f));
  std::deque<std::vector<void*>> buffers;
  std::vector<BoundInstance> instances;
  for (int64_t k = 0; k < (many ? rows : 1); ++k) {
    buffers.push_back({static_cast<float*>(x.data()) + k * columns, static_cast<float*>(sums.data()) + k});
    BoundInstance& instance = instances.emplace_back();
    instance.function = module->Function(0);
    instance.buffers = buffers.back();
    instance.extents = absl::MakeConstSpan(&columns, 1);
    instance.iterations = many ? 1 : rows;
  }
  EXPECT_TRUE(memory.backend.Launch(instances).ok());
  const std::vector<float> result = sums.values();
  for (int64_t row = 0; row < rows; ++row) {
    float expected = 0;  // of small whole numbers: exact in any order
    for (int64_t j = 0; j < columns; ++j) expected += values[row * columns + j];
    ASSERT_EQ(result[row], expected) << "row " << row << " of " << rows << " x " << columns;
  }
}

void CheckWarps(BlockMemory memory, int64_t size) {
  struct Result {
    int sum, negative, any, last;
  };
  const auto module = CompileBlockKernels(memory.backend, {WarpKernel()});
  ASSERT_TRUE(module->status().ok());
  std::vector<int> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(i < 32 ? i : i * 7 % 23 - 11);
  DeviceArray<int> x(memory, values), total(memory, {0});
  DeviceArray<Result> y(memory, std::vector<Result>(size));
  const std::vector<void*> buffers = {x.data(), y.data(), total.data()};
  BoundInstance instance;
  instance.function = module->Function(0);
  instance.buffers = buffers;
  instance.iterations = size;
  EXPECT_TRUE(memory.backend.Launch(absl::MakeConstSpan(&instance, 1)).ok());
  const std::vector<Result> results = y.values();
  int all_negative = 0;
  for (int64_t first = 0; first < size; first += 32) {
    int negative = 0, last = 0, sum = 0;
    for (int64_t i = first; i < std::min(first + 32, size); ++i) {
      negative += values[i] < 0 ? 1 : 0;
      last += values[i];
    }
    for (int64_t i = first; i < std::min(first + 32, size); ++i) {
      sum += values[i];
      ASSERT_EQ(results[i].sum, sum) << i;
      ASSERT_EQ(results[i].negative, negative) << i;
      ASSERT_EQ(results[i].any, negative > 0 ? 1 : 0) << i;
      ASSERT_EQ(results[i].last, last) << i;
    }
    all_negative += negative;
  }
  EXPECT_EQ(total.values(), std::vector<int>{all_negative});
}

void CheckWords(BlockMemory memory) {
  const auto module = CompileBlockKernels(memory.backend, {WordsKernel()});
  ASSERT_TRUE(module->status().ok());
  DeviceArray<float> y(memory, std::vector<float>(64, -1.0f));
  void* const pointer = y.data();
  BoundInstance instance;
  instance.function = module->Function(0);
  instance.buffers = absl::MakeConstSpan(&pointer, 1);
  instance.iterations = 64;
  EXPECT_TRUE(memory.backend.Launch(absl::MakeConstSpan(&instance, 1)).ok());
  EXPECT_EQ(y.values(), std::vector<float>(64, 1.0f));
}

}  // namespace torch_lazy::backends
