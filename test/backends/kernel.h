// SPDX-License-Identifier: Apache-2.0
// Small kernels for tests of the backend, and a folder of one's own.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/backend.h"
#include "base/flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace torch_lazy::backends {

// Writes `value` + i to element i.
inline codegen::Kernel CountFrom(int value) {
  const std::string name = absl::StrCat("count_from_", value);
  return {name, absl::StrCat("extern \"C\" void ", name,
                             "(void* const* b, const long*, const double*, long begin, long end, void*) {\n"
                             "  for (long i = begin; i < end; ++i) ((long*)b[0])[i] += ",
                             value, " + i;\n}\n")};
}

inline BoundInstance Bind(void* function, void* const* buffer, int64_t iterations) {
  BoundInstance instance;
  instance.function = function;
  instance.buffers = absl::MakeConstSpan(buffer, 1);
  instance.iterations = iterations;
  return instance;
}

// What CountFrom(value) writes in one run.
inline std::vector<int64_t> Counted(int value, int64_t size) {
  std::vector<int64_t> numbers;
  for (int64_t k = 0; k < size; ++k) numbers.push_back(value + k);
  return numbers;
}

// Also for an option that is fixed by now: a test plays several processes.
inline void SetOptionAnew(const char* name, const std::string& value) {
  base::internal::FixedOptions() = 0;
  ASSERT_TRUE(base::SetOption(name, value).ok());
}

inline std::string NewFolder() {
  std::string path = absl::StrCat(testing::TempDir(), "/lazy_backend_XXXXXX");
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

}  // namespace torch_lazy::backends
