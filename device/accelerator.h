// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace torch_lazy::device {

// Whether PyTorch takes our device for its accelerator where it asks on this thread: not while one lives. To the autograd
// engine that is a device without streams to wait for.
class NotTheAccelerator {
 public:
  NotTheAccelerator();
  ~NotTheAccelerator();
  NotTheAccelerator(const NotTheAccelerator&) = delete;
  NotTheAccelerator& operator=(const NotTheAccelerator&) = delete;
};

}  // namespace torch_lazy::device
