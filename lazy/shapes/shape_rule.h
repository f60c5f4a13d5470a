// SPDX-License-Identifier: Apache-2.0
// Rules for the geometry of an operator's results, by that of its arguments (device/shapes).
//
//   bool Embedding(lazy::ShapeCall& call) {  // (weight, indices, ...)
//     c10::DimVector sizes(call.Tensor(1).sizes());
//     sizes.push_back(call.Tensor(0).size(1));
//     return call.Return(sizes, call.Tensor(0).scalar_type());
//   }
//
// A rule is believed of a call once it has given what a call like it gave when it ran: equal in operator, dtypes, ranks
// and orders of strides, extents of none and of one, truth values, numbers that eager may refuse, and in which
// arguments are there. So it says nothing of dtypes that eager refuses. It must tell what eager refuses because of
// extents and integers: it returns false then, and ATen is asked.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "lazy/calls/call.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

class ShapeCall {
 public:
  ShapeCall(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

  // --- arguments, by position in the schema ---
  size_t num_args() const { return num_args_; }
  bool Has(size_t arg) const;  // neither None nor an undefined tensor
  const at::Tensor& Tensor(size_t arg) const { return args_[arg].toTensor(); }
  bool IsTensor(size_t arg) const { return args_[arg].isTensor(); }
  std::vector<at::Tensor> Tensors(size_t arg) const;  // undefined where the list has none
  int64_t Int(size_t arg) const { return args_[arg].toInt(); }
  int64_t Int(size_t arg, int64_t if_none) const { return Has(arg) ? Int(arg) : if_none; }
  bool Bool(size_t arg) const { return args_[arg].toBool(); }
  std::vector<int64_t> Ints(size_t arg) const { return args_[arg].toIntVector(); }
  std::vector<bool> Bools(size_t arg) const;
  at::Scalar Number(size_t arg) const { return args_[arg].toScalar(); }
  at::ScalarType DType(size_t arg, at::ScalarType if_none) const;
  // Of a dimension of `rank`, counted from the end if negative; -1 if there is none such.
  int64_t Dim(size_t arg, int64_t rank) const;

  // --- results, in order; each returns true ---
  bool Return(c10::IntArrayRef sizes, at::ScalarType dtype);  // contiguous
  bool Return(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype);
  bool Return(c10::IntArrayRef sizes, at::MemoryFormat format, at::ScalarType dtype);
  bool ReturnLike(const at::Tensor& tensor);  // contiguous
  bool ReturnUndefined();
  bool ReturnWritten(size_t arg);                // the argument itself, written in place
  bool ReturnElementwise(at::ScalarType dtype);  // of all operands, as a pointwise kernel would

  // Null unless the rule has given every result, and no tensor besides.
  std::shared_ptr<const CallShape> Finish();

 private:
  ResultShape& Next();

  const Op& op_;
  const CallDescription& call_;
  const c10::IValue* args_;
  size_t num_args_;
  std::shared_ptr<CallShape> shape_;
};

// Null if the operator has no rule, or it does not say. Pointwise operators have one: of the operands' one dtype, and
// of the sizes and strides that their iterator gives.
std::shared_ptr<const CallShape> RuledShape(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

// Whether the rule of the operator, or of its functional form, has an answer.
bool IsTakenByRule(const Op& op, const CallDescription& call, const torch::jit::Stack& stack);

}  // namespace torch_lazy::lazy
