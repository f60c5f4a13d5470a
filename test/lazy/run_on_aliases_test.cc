// SPDX-License-Identifier: Apache-2.0
// ATen's kernels called with arguments that nobody else owns.
#include "lazy/run/run_on_aliases.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

namespace torch_lazy::lazy {
namespace {

const Op& OpNamed(const char* name, const char* overload) {
  return OpOf(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

// A tensor over `memory` that writes down its end.
template <class Number>
at::Tensor Watched(std::vector<Number>* memory, bool* ended) {
  const auto size = static_cast<int64_t>(memory->size());
  return at::from_blob(
      memory->data(), {size}, [ended](void*) { *ended = true; }, c10::CppTypeToScalarType<Number>::value);
}

TEST(RunOnAliases, OutputsOutliveTheCall) {
  std::vector<float> values(2);
  std::vector<int64_t> indices(2);
  bool values_ended = false, indices_ended = false;
  torch::jit::Stack stack = {at::arange(8, at::kFloat),        2, -1, true, true, Watched(&values, &values_ended),
                             Watched(&indices, &indices_ended)};
  RunOnAliases(OpNamed("aten::topk", "values"), &stack);
  EXPECT_FALSE(values_ended);
  EXPECT_FALSE(indices_ended);
  ASSERT_EQ(stack.size(), 2);
  EXPECT_EQ(values, (std::vector<float>{7, 6}));
  EXPECT_EQ(indices, (std::vector<int64_t>{7, 6}));
}

}  // namespace
}  // namespace torch_lazy::lazy
