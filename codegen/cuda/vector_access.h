// SPDX-License-Identifier: Apache-2.0
// Which addresses a thread reads and writes several elements of at once.
//
// A thread does V neighbours of a kernel's innermost loop together. Where they are neighbours in
// memory too, they are one access; a condition, the same for the whole launch, says whether they
// are aligned.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernels/kernel_text.h"
#include "codegen/plan/compile_options.h"

namespace torch_lazy::codegen::cuda {

class VectorAccess {
 public:
  // `innermost` may be null: a kernel without loops. `walked`: the variables, as bits, that change
  // from one access to the next within a function; what lies at data that these change is no row.
  VectorAccess(const Body& body, const Loop* innermost, uint64_t walked, KernelText* text);

  // V, from the widest element that is read or written; of those that all rows share, if there are
  // no others.
  int width() const { return width_; }

  // Steps by one along the innermost loop, from a place that nothing else in the loop changes.
  bool IsContiguous(int address) const { return is_contiguous_[address]; }

  // Is the expression a load of whole vectors?
  bool LoadsVector(int expression) const;

  // Is contiguous, and the same place whatever the other loops do.
  bool IsOfAllRows(int address) const { return is_of_all_rows_[address]; }

  // May a row of the innermost loop, which begins anywhere, be walked over in vectors? Then these
  // lines say where they are: from element `head` on, so many `vectors` of V; `others` elements are
  // before and after. None are, if addresses are aligned at different ones.
  bool HasVectorsInRow() const;
  void PlaceVectorsInRow(const std::string& length);

  // True if V neighbours never cross the innermost loop's end and all contiguous addresses are
  // aligned. `is_flat`: there is no other loop, so that only the last ones may cross it.
  std::string Condition(bool is_flat) { return Condition(is_flat, width_); }
  std::string Condition(bool is_flat, int width);  // the same for fewer neighbours

  // Is it true, if there are other loops, where the innermost's extent is a multiple of V, and all
  // pointers are aligned?
  bool FollowsFromExtent() const;

  // Is it true for the sizes seen first, if there are other loops?
  bool HoldsForSeenSizes(const CompileOptions& options) const;

 private:
  // The numbers that V must divide.
  std::vector<Polynomial> Steps() const;

  const Body& body_;
  const Loop* const innermost_;
  KernelText& text_;
  int width_ = 4;
  std::vector<bool> is_contiguous_, is_of_all_rows_;
};

}  // namespace torch_lazy::codegen::cuda
