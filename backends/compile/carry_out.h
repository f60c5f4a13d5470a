// SPDX-License-Identifier: Apache-2.0
// Compiles what an order says.
#pragma once

#include <functional>

#include "backends/compile/order.h"

namespace torch_lazy::backends {

struct CarryOutOptions {
  bool own_group = true;                                   // the C++ compiler gets a group of processes for itself
  std::function<bool()> must_stop = [] { return false; };  // asked every 0.1 s: it is ended if so
};

// Compiles, and keeps the code in the order's cache. Files on the way lie in a folder that is gone
// in the end. The C++ compiler is a child that is ended after five minutes; NVRTC runs on the
// calling thread.
Compiled CarryOut(const Order& order, const CarryOutOptions& options);

}  // namespace torch_lazy::backends
