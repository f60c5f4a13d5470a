// SPDX-License-Identifier: Apache-2.0
// What the device did with the program since the last reset of the metrics, and why, in words.
#pragma once

#include <string>

namespace torch_lazy::lazy {

std::string Explain();

}  // namespace torch_lazy::lazy
