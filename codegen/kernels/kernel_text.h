// SPDX-License-Identifier: Apache-2.0
// The parts of a kernel's text that do not depend on its shape.
//
// Numbers (extents, strides, scalars) are named when first asked for and declared at the top, so
// that kernels of equal structure have equal text. Whoever launches has done their sums and products.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "codegen/kernels/body.h"
#include "codegen/kernels/loops.h"
#include "codegen/kernels/precision.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/target.h"

namespace torch_lazy::codegen {

struct WrittenKernel {
  Kernel kernel;
  Instance instance;        // without buffers
  std::vector<Slot> slots;  // what the buffers are, in order
  // CUDA: texts of its entries, with KERNEL for the name, which its own lacks yet; empty: it cannot have that one.
  struct Entries {
    std::string one, few, many;
  };
  Entries entries = {};
};

class KernelText {
 public:
  KernelText(const ir::Graph& graph, const Body& body, Target target = Target::kCpu)
      : graph_(graph),
        body_(body),
        target_(target),
        depth_(target == Target::kCpu ? 1 : 0),
        names_(body.expressions.size()),
        precisions_(target == Target::kCuda ? PrecisionsOf(graph, body) : std::vector<Precision>(names_.size())) {
    FindErfs();
  }

  void Open(const std::string& line);   // a line, then deeper
  void Close(const std::string& line);  // less deep, then a line
  void Line(const std::string& line);
  void Independent();  // the loop that follows writes nothing that it reads elsewhere, and adds nothing up
  void Head();         // stands for the pointers and numbers, which are all known only in the end

  std::string Number(const Polynomial& polynomial);  // "1", or a name such as "n0"
  std::string PointerTo(int slot);                   // the slot's pointer, "p0"

  // The elements of an address, from `base` on, along the given loops; `indices` are their index
  // variables.
  struct Along {
    const Loop* loop;
    std::string index;
  };
  std::string IndexText(const Affine& index, absl::Span<const Along> along, bool with_offset);

  // Declares the expression's number as a constant of this scope. `place` is where a load reads, or
  // an iota's number.
  void Define(int expression, const std::string& place);
  void DefineAs(int expression, const std::string& text);  // the same, from any text
  bool defined(int expression) const { return !names_[expression].empty(); }
  void SetName(int expression, const std::string& name) { names_[expression] = name; }
  const std::string& name(int expression) const { return names_[expression]; }
  void Forget(int expression) { names_[expression].clear(); }

  std::string NewName(char letter) { return absl::StrCat(std::string(1, letter), next_name_++); }

  // The kernel around the lines written so far.
  WrittenKernel Finish(const std::string& prefix, const ir::Dims& range);

  // The same of several functions, whose Head() reads the pointers and numbers from these arrays.
  struct Arrays {
    std::string buffers, numbers, scalars;
  };
  std::string Lines(const Arrays& arrays) const;
  size_t num_extents() const { return extents_.size(); }
  // Of `text`, in which the kernel's name is KERNEL.
  WrittenKernel Written(const std::string& prefix, const ir::Dims& range, const std::string& text) const;

  const ir::Graph& graph() const { return graph_; }
  const Body& body() const { return body_; }
  ir::DType SlotType(int slot) const { return graph_.type(body_.slots[slot].value).dtype; }
  ir::DType TypeAt(int address) const { return SlotType(body_.addresses[address].slot); }

 private:
  void CheckBounds(int expression);
  std::string TextOf(int expression) const;  // of an op, applied to its arguments
  void FindErfs();
  std::string HeadText(const Arrays& arrays) const;
  std::string ScalarText(ir::Value scalar);

  const ir::Graph& graph_;
  const Body& body_;
  const Target target_;
  std::string lines_;
  int depth_;
  int next_name_ = 0;
  std::vector<std::string> names_;  // of expressions
  const std::vector<Precision> precisions_;
  absl::flat_hash_set<int> erfs_;  // expressions: erf, where 1 + erf is one function
  std::vector<Polynomial> extents_;
  absl::flat_hash_map<Polynomial, size_t> places_;  // of these
  std::vector<int32_t> scalars_;
};

// Where the kernel's outer iteration space begins and ends.
ir::Dims RangeOf(const Loops& loops);

}  // namespace torch_lazy::codegen
