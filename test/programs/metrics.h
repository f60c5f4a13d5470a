// SPDX-License-Identifier: Apache-2.0
// The device's counters, read through the dispatcher alone.
#pragma once

#include <cstdint>
#include <string>

namespace programs {

// Runs what is pending.
void Sync();

// torch_lazy::set_option(name, value).
void SetOption(const std::string& name, const std::string& value);

// One number of torch_lazy::metrics(); throws if there is no such key.
int64_t Metric(const std::string& key);

}  // namespace programs
