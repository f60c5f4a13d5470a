// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace torch_lazy::fuzz {

// Work in a process of its own, which may crash or hang.
class Child {
 public:
  // The process ends by SIGALRM after `limit_s` seconds.
  Child(const std::function<std::string()>& work, unsigned limit_s);

  // What the work returned, or "crashed: ..." or "hung". To be called once.
  std::string Wait();

 private:
  pid_t pid_;
  int pipe_;
};

}  // namespace torch_lazy::fuzz
