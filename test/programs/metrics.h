// SPDX-License-Identifier: Apache-2.0
// The device's counters, read through the dispatcher alone, and its options.
#pragma once

#include <cstdint>
#include <string>

namespace programs {

// Runs what is pending.
void Sync();

// Sets an option of the device.
void SetOption(const std::string& name, const std::string& value);

// One number of torch_lazy::metrics(); throws if there is no such key.
int64_t Metric(const std::string& key);

}  // namespace programs
