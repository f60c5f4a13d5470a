// SPDX-License-Identifier: Apache-2.0
// Short ways to make values and to evaluate graphs in tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/evaluate.h"
#include "ir/parse.h"

namespace torch_lazy::ir {

inline HostValue F32(std::vector<int64_t> sizes, std::vector<double> numbers) {
  return MakeFloats(DType::kF32, std::move(sizes), numbers);
}
inline HostValue F64(std::vector<int64_t> sizes, std::vector<double> numbers) {
  return MakeFloats(DType::kF64, std::move(sizes), numbers);
}
inline HostValue I64(std::vector<int64_t> sizes, std::vector<int64_t> numbers) {
  return MakeIntegers(DType::kI64, std::move(sizes), numbers);
}

// The outputs of a graph that must evaluate.
inline std::vector<HostValue> OutputsOf(const Graph& graph, std::vector<HostValue> params,
                                        std::vector<int64_t> symbols = {}, std::vector<HostValue> scalars = {}) {
  absl::StatusOr<std::vector<HostValue>> outputs =
      Evaluate(graph, {std::move(params), std::move(scalars), std::move(symbols), nullptr});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<HostValue>(graph.outputs.size());
}

inline std::vector<HostValue> OutputsOf(absl::string_view text, std::vector<HostValue> params,
                                        std::vector<int64_t> symbols = {}, std::vector<HostValue> scalars = {}) {
  const absl::StatusOr<Graph> graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? OutputsOf(*graph, std::move(params), std::move(symbols), std::move(scalars))
                    : std::vector<HostValue>(1);
}

}  // namespace torch_lazy::ir
