// SPDX-License-Identifier: Apache-2.0
// Operators that share no kernel although one needs what the other makes, and why.
#pragma once

#include <string>

namespace torch_lazy::lazy {

// A line for each pair of operators and each reason, the most frequent first: of all graphs that are planned, until
// those looked at have 20,000 nodes. Planning is done again for it, which takes about as long as it took before.
std::string TextOfApart();

}  // namespace torch_lazy::lazy
