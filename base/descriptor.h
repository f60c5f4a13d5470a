// SPDX-License-Identifier: Apache-2.0
// An open file or folder, closed when its holder goes.
#pragma once

#include <unistd.h>

#include <utility>

namespace torch_lazy::base {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}  // -1: nothing
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

}  // namespace torch_lazy::base
