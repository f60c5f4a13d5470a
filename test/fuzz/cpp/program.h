// SPDX-License-Identifier: Apache-2.0
// Random programs: what a step is, and running them on a device.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "test/fuzz/cpp/lines.h"

namespace torch_lazy::fuzz {

// A line and what its names stand for; tensors by number.
struct Step {
  int kind = 0, line = 0;
  int a = 0, b = 0, c = 0, out = 0;  // the next after `out` is `out2`
  double number = 0;
  int64_t extent = 1;
  std::vector<int64_t> shape;
  at::ScalarType dtype = at::kFloat;

  const Line& form() const { return Kinds()[kind].lines[line]; }
  std::string Text() const;  // C++, with the names of the tensors
};

using Program = std::vector<Step>;

// A text that reads back as the same program.
std::string Write(const Program& program);
Program Read(const std::string& text);

// Tensors on a device.
class Machine {
 public:
  explicit Machine(at::Device device) : device_(device) {}

  void Run(const Step& step);

  // By number; undefined where there is none. Gradients of leaves stand beside them.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  at::Tensor GradOf(size_t number) const;
  // How often the tensor was written since it got its number. A fresh result may have been written before.
  int64_t Writes(size_t number) const { return tensors_[number]._version() - born_[number].version; }
  // Per step that has run: the type of its exception, or nothing; and what it noted.
  const std::vector<std::string>& errors() const { return errors_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Birth {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor{c10::intrusive_ptr<c10::TensorImpl>()};
    int64_t version = 0;
  };

  at::Device device_;
  std::vector<at::Tensor> tensors_;
  std::vector<Birth> born_;
  std::vector<std::string> errors_, notes_;
};

// Runs the program from the seed on.
std::unique_ptr<Machine> RunOn(at::Device device, const Program& program);

// Whether all numbers on the machine are few, and exact in any order of summation.
bool IsExact(const Machine& machine);

// What differs, or nothing.
std::string Difference(const Machine& actual, const Machine& expected);

}  // namespace torch_lazy::fuzz
