// SPDX-License-Identifier: Apache-2.0
// What efforts to be faster have cost and saved since the last reset of the metrics (lazy/host/ledger.h), in words and
// numbers.
#pragma once

#include <string>

namespace torch_lazy::lazy {

// A line for each that was tried or used.
std::string TextOfEfforts();

// All metrics as one JSON object: those of base/metrics.h, and "efforts" by name.
std::string MetricsJson();

}  // namespace torch_lazy::lazy
