// SPDX-License-Identifier: Apache-2.0
// What graphs make of constant parameters, once for all entries that want the same.
#pragma once

#include <memory>
#include <vector>

#include <c10/core/Storage.h>

#include "absl/functional/function_ref.h"
#include "lazy/run/plans.h"

namespace torch_lazy::lazy {

using ConstantContents = std::vector<c10::Storage>;

// All that they follow from.
struct ConstantsKey {
  std::shared_ptr<PlannedGraph> graph;
  std::vector<int64_t> extents;  // all that are in it
  std::vector<uint64_t> stamps;  // of its parameters, none 0
  std::vector<double> numbers;
  friend bool operator==(const ConstantsKey&, const ConstantsKey&) = default;
};

// Those that somebody has, else what `make` gives. One at a time is made.
std::shared_ptr<const ConstantContents> FindOrMakeConstants(ConstantsKey key,
                                                            absl::FunctionRef<ConstantContents()> make);

}  // namespace torch_lazy::lazy
