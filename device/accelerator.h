// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace torch_lazy::device {

// Whether PyTorch takes our device for its accelerator where it asks on this thread: not while one lives. To the
// autograd engine that is a device without streams to wait for.
class NotTheAccelerator {
 public:
  NotTheAccelerator();
  ~NotTheAccelerator();
  NotTheAccelerator(const NotTheAccelerator&) = delete;
  NotTheAccelerator& operator=(const NotTheAccelerator&) = delete;
};

// Whether the device has ever held a tensor.
bool IsLazyInUse();

// So many more questions of the program's own are being answered on this thread.
void CountQuestions(int more);

}  // namespace torch_lazy::device
