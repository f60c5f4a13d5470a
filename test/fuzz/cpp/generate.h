// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "test/fuzz/cpp/program.h"

namespace torch_lazy::fuzz {

// A program of at most `num_steps`, made a step at a time by running each on the CPU.
Program Generate(int seed, int num_steps, bool with_random_numbers);

}  // namespace torch_lazy::fuzz
