// SPDX-License-Identifier: Apache-2.0
// The device's random number generators.
//
// Each is a generator of the eager device under our device's name, so that the same seed gives the numbers that eager
// gives. The default one *is* the eager device's default: eager CPU draws all numbers of a program from one engine, and
// so do we.
#pragma once

#include <ATen/core/Generator.h>

namespace torch_lazy::lazy {

// Of a device by its index; negative: the current one.
const at::Generator& DefaultGenerator(int index);
at::Generator NewGenerator(int index);

// The generator that draws for `generator` when a call is run on aliases. Throws for another device's.
at::Generator EagerGeneratorOf(const at::Generator& generator);

}  // namespace torch_lazy::lazy
