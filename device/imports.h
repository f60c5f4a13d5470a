// SPDX-License-Identifier: Apache-2.0
// Answers for a function of PyTorch's where one of its libraries calls it by name.
#pragma once

namespace torch_lazy::device {

// From now on the library that `address` lies in calls `replacement`, which has its type, in the place of `function`,
// which other libraries may call, too. False, and nothing is done, if it does not call it by
// the table of imported addresses.
bool ReplaceImport(void* address, void* function, void* replacement);

}  // namespace torch_lazy::device
