// SPDX-License-Identifier: Apache-2.0
// Chains of views against as_strided: whatever a geometry reads, the views found for it read the same elements.
#include "lazy/lower/strided_views.h"

#include <numeric>
#include <random>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "ir/evaluate.h"

namespace torch_lazy::lazy {
namespace {

int64_t Product(c10::IntArrayRef numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
}

// The elements that the views of `geometry` read from 0, 1, 2, ...; nullopt if no views were found.
std::optional<std::vector<int64_t>> ReadThroughViews(const c10::DimVector& dims, const Geometry& geometry) {
  ir::Builder builder("read");
  SymbolTable symbols;
  MemoryValue memory;
  memory.dims = dims;
  memory.dtype = at::kLong;
  memory.value = builder.Param({ir::DType::kI64, symbols.DimsOf(dims)});
  const ir::Value value = Read(&builder, &symbols, memory, geometry);
  if (value == ir::kNoValue) return std::nullopt;
  const ir::Graph graph = builder.Finish({{value}});
  std::vector<int64_t> numbers(static_cast<size_t>(Product(dims)));
  std::iota(numbers.begin(), numbers.end(), 0);
  ir::EvaluateInputs inputs;
  inputs.params = {ir::MakeIntegers(ir::DType::kI64, {dims.begin(), dims.end()}, numbers)};
  inputs.symbols = symbols.numbers();
  const auto outputs = ir::Evaluate(graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs->at(0).integers;
}

std::vector<int64_t> ReadByAten(const c10::DimVector& dims, const Geometry& geometry) {
  const at::Tensor base = at::arange(Product(dims), at::kLong);
  const at::Tensor read = base.as_strided(geometry.sizes, geometry.strides, geometry.offset).contiguous();
  return {read.const_data_ptr<int64_t>(), read.const_data_ptr<int64_t>() + read.numel()};
}

Geometry GeometryOfView(const at::Tensor& view) {
  Geometry geometry = GeometryOf(view);
  geometry.dtype = at::kLong;
  return geometry;
}

// A random chain of views, as programs make them.
at::Tensor RandomView(at::Tensor view, std::mt19937* random) {
  auto below = [&](int64_t n) { return static_cast<int64_t>((*random)() % static_cast<uint64_t>(n)); };
  for (int64_t steps = 1 + below(4); steps > 0; --steps) {
    const int64_t dim = view.dim() == 0 ? 0 : below(view.dim());
    switch (view.dim() == 0 ? 3 : below(6)) {
      case 0:
        view = view.transpose(dim, below(view.dim()));
        break;
      case 1: {
        const int64_t start = below(view.size(dim));
        view = view.slice(dim, start, start + 1 + below(view.size(dim) - start), 1 + below(2));
        break;
      }
      case 2:
        view = view.select(dim, below(view.size(dim)));
        break;
      case 3:
        view = view.unsqueeze(0).expand_symint([&] {
          std::vector<c10::SymInt> sizes(view.sym_sizes().begin(), view.sym_sizes().end());
          sizes.insert(sizes.begin(), 1 + below(3));
          return sizes;
        }());
        break;
      case 4:
        if (view.size(dim) % 2 == 0) view = view.unflatten(dim, {2, view.size(dim) / 2});
        break;
      default:
        if (view.is_contiguous()) view = view.view(-1);
    }
  }
  return view;
}

TEST(Access, ViewsReadWhatTheGeometryReads) {
  std::mt19937 random(20261121);
  int found = 0;
  constexpr int kRounds = 3000;
  for (int round = 0; round < kRounds; ++round) {
    const c10::DimVector dims = {2 + static_cast<int64_t>(random() % 5), 2 + static_cast<int64_t>(random() % 6), 6};
    const at::Tensor view = RandomView(at::arange(Product(dims), at::kLong).view(dims), &random);
    const Geometry geometry = GeometryOfView(view);
    const auto read = ReadThroughViews(dims, geometry);
    if (!read) continue;
    ++found;
    ASSERT_EQ(*read, ReadByAten(dims, geometry)) << "round " << round << ": sizes " << view.sizes() << ", strides "
                                                 << view.strides() << ", offset " << view.storage_offset();
  }
  EXPECT_GT(found, kRounds * 9 / 10);  // the rest is run by ATen on the memory
}

TEST(Access, OverlappingWindowsAreNoChainOfViews) {
  const Geometry windows = GeometryOfView(at::arange(12, at::kLong).unfold(0, 4, 2));
  EXPECT_FALSE(ReadThroughViews({12}, windows).has_value());
}

TEST(Access, AGeometryWithGapsDoesNotCover) {
  const at::Tensor base = at::arange(12, at::kLong).view({3, 4});
  EXPECT_TRUE(MemoryOrder(GeometryOf(base.t()), 96).has_value());
  EXPECT_FALSE(MemoryOrder(GeometryOf(base.slice(1, 0, 3)), 96).has_value());
  EXPECT_FALSE(MemoryOrder(GeometryOf(base.select(0, 0).expand({3, 4})), 96).has_value());
}

TEST(Access, AWriteThroughATransposeIsReadBackByTheBase) {
  ir::Builder builder("write");
  SymbolTable symbols;
  const at::Tensor base = at::arange(12, at::kLong).view({3, 4});
  const Geometry transposed = GeometryOf(base.t());
  const ir::Value logical = builder.Param({ir::DType::kI64, symbols.DimsOf({4, 3})});
  const MemoryValue memory = Write(&builder, &symbols, logical, transposed, *MemoryOrder(transposed, 96));
  const ir::Value back = Read(&builder, &symbols, memory, GeometryOf(base));
  const ir::Graph graph = builder.Finish({{back}});
  ir::EvaluateInputs inputs;
  inputs.params = {ir::MakeIntegers(ir::DType::kI64, {4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})};
  inputs.symbols = symbols.numbers();
  const auto outputs = ir::Evaluate(graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->at(0).integers, (std::vector<int64_t>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
}

}  // namespace
}  // namespace torch_lazy::lazy
