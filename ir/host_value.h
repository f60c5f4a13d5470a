// SPDX-License-Identifier: Apache-2.0
// A value in host memory, for the reference evaluator and tests.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/type.h"

namespace torch_lazy::ir {

// Row-major. Numbers of float types lie in `floats`, of integer types and bool in `integers`; the
// other is empty. They are rounded to the dtype. Complex types have no numbers here.
struct HostValue {
  DType dtype = DType::kF32;
  std::vector<int64_t> sizes;
  std::vector<double> floats;
  std::vector<int64_t> integers;

  int64_t num_elements() const;
};

HostValue MakeHostValue(DType dtype, std::vector<int64_t> sizes);  // zeros
HostValue MakeFloats(DType dtype, std::vector<int64_t> sizes,
                     absl::Span<const double> numbers);  // rounded
HostValue MakeIntegers(DType dtype, std::vector<int64_t> sizes,
                       absl::Span<const int64_t> numbers);  // wrapped

// As the numbers lie in a buffer.
HostValue FromBytes(DType dtype, std::vector<int64_t> sizes, const void* bytes);
void ToBytes(const HostValue& value, void* bytes);

bool SameNumbers(const HostValue& a, const HostValue& b);  // bit for bit, but all NaNs are one

}  // namespace torch_lazy::ir
