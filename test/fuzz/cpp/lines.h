// SPDX-License-Identifier: Apache-2.0
// The lines that a random program may consist of.
//
// A line is C++ over the members of a Frame: `a`, `b` and `c` are tensors there are, `out` and `out2` new ones, `note`
// a new value on the host. Numbers are small multiples of a quarter, so that sums and products are exact in any order,
// and results can be compared bit by bit. (The Python twin has lines that round as well.)
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace torch_lazy::fuzz {

struct Frame {
  at::Tensor &a, &b, &c, &out, &out2;
  std::string& note;
  double number;
  int64_t extent;
  std::vector<int64_t> shape;
  at::ScalarType dtype;
  at::Device device;
};

struct Line {
  const char* text;
  void (*run)(Frame&);

  bool Says(const char* name) const;
};

struct Kind {
  const char* name;
  double weight;
  std::vector<Line> lines;
};

const std::vector<Kind>& Kinds();

}  // namespace torch_lazy::fuzz
