// SPDX-License-Identifier: Apache-2.0
// Values that each thread has one of.
#pragma once

#include <utility>

namespace torch_lazy::base {

// The calling thread's T, the same at each call: T is a type of its user's own. It ends with the
// thread, and may be used even then, by what ends later or is done at exit: there is a new one,
// which stays.
template <typename T>
T& OfThread() {
  static thread_local T* value = nullptr;
  if (value == nullptr) {
    struct Owner {
      ~Owner() { delete std::exchange(value, nullptr); }
    };
    value = new T();
    static thread_local Owner owner;
    static_cast<void>(owner);
  }
  return *value;
}

}  // namespace torch_lazy::base
