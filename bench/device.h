// SPDX-License-Identifier: Apache-2.0
// Devices for benchmarks, opened by name.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace bench {

// "cpu"; "cuda"; "lazy"; or "null", whose kernels make their results' tensors and compute nothing. All but the first
// are shared libraries, one of them at most in a process. Ends the program when a library cannot be opened.
c10::Device Open(const std::string& name);

// Runs what is pending, and waits for a GPU.
void Sync();

// A number of metrics(), and the ATen calls recorded so far; 0 but for lazy.
int64_t Metric(const std::string& name);
int64_t NumCalls();

}  // namespace bench
