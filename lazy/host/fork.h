// SPDX-License-Identifier: Apache-2.0
// What a child of fork() needs to go on and to exit, though it cannot use the device.
//
// It has its parent's locks as they were, and one thread. So the fork waits until nobody else holds those that the end
// of a tensor takes, and what the child's tensors had of our memory is not given back.
#pragma once

namespace torch_lazy::lazy {

void BeforeFork();
void AfterForkInParent();
void AfterForkInChild();

// True in a child whose parent had used the device.
bool IsForked();

}  // namespace torch_lazy::lazy
