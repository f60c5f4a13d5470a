// SPDX-License-Identifier: Apache-2.0
// One overload of an ATen operator, as the recorder knows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_lazy::lazy {

class Lowering;
class ShapeCall;

// A row of the ATen tables (device/rows): what this library knows of an overload beyond its schema.
// One row serves the functional, the in-place and the `out=` form; a form that computes otherwise has a row of its own.
struct Row {
  // Functional overload, e.g. "aten::add.Tensor".
  const char* name;
  // Lowers one call to primitives; false: this call cannot be lowered and is run by ATen in its place. Null: never
  // lowered.
  bool (*lower)(Lowering&) = nullptr;
  uint32_t flags = 0;
};

enum RowFlags : uint32_t {
  kPlain = 0,
  // The values of number arguments are structure (part of the trace's path), not run-time arguments: pow's exponent.
  kStructuralScalars = 1,
  // Never recorded: the shape or the work depends on data.
  kImmediate = 2,
  // The result is bool whatever the operands are.
  kBoolean = 4,
  // Eager refuses some values of its numbers, which are structure therefore: ATen is asked about each at once, the
  // first time.
  kRefusesNumbers = 8,
};

// How an operator runs on CPU aliases when it is not the operator itself that is called there.
using Runner = void (*)(torch::jit::Stack*);

// Which numbers an operator refuses: integers beside integer tensors, as divisor or exponent; a truth value as factor.
enum class Refused : uint8_t { kNone, kZero, kNegative, kTruth };

enum class ArgKind : uint8_t {
  kTensor,
  kTensorList,
  kOptionalTensorList,
  kNumber,
  kNumberList,
  kStructure,
  kGenerator
};

struct Arg {
  ArgKind kind;
  bool written = false;  // the schema marks it (a!)
  bool is_out = false;   // `out=`: overwritten unread
  bool is_unit = false;  // a number that is 1 unless the caller says otherwise; that it is 1 belongs to the path
};

struct Op {
  explicit Op(c10::OperatorHandle handle);

  c10::OperatorHandle handle;
  std::string name;  // "aten::add.Tensor"
  uint32_t id = 0;
  const Row* row = nullptr;
  Runner runner = nullptr;
  bool (*shape_rule)(ShapeCall&) = nullptr;  // see shape_rule.h
  bool immediate = false;                    // never recorded
  bool dynamic_by_mask = false;              // truth values among its operands tell the shape of its result
  bool random = false;                       // draws from a generator
  bool has_meta = false;                     // a Meta kernel gives shapes and errors exactly as eager's
  bool pointwise = false;
  std::vector<Arg> args;
  std::vector<int> return_alias;     // per return: index of the written argument it is, -1 for a new tensor
  int seed_arg = -1;                 // ours that draw: which number is the seed; the next is the offset
  bool tensor_results = true;        // all returns are tensors or lists of tensors
  bool writes = false;               // some argument is written
  bool takes_tensors = false;        // some argument, `out=` aside, is a tensor or a list of tensors
  bool updates_list = false;         // `_foreach_*_`: writes each tensor of its first argument
  bool may_fail = true;              // may refuse values when it runs: an index out of range, a singular matrix
  bool structural_numbers = false;   // the values of its numbers are part of the path
  Refused refuses = Refused::kNone;  // see refused_numbers.h
};

// The op of a handle; made on first use, never freed.
const Op& OpOf(const c10::OperatorHandle& handle);

// The op of this name, if it was ever called; else null.
const Op* FindOp(const std::string& name);

// One of torch.ops.torch_lazy, which refuse nothing when they run.
inline bool IsOurs(const c10::OperatorHandle& handle) {
  return handle.operator_name().name.starts_with("torch_lazy::");
}

// Called by device/ before the first call: rows, runners and rules of shape by overload name.
void RegisterRow(const Row& row);
void RegisterRunner(const char* name, Runner runner);
void RegisterShapeRule(const char* name, bool (*rule)(ShapeCall&));

// Eager takes `_foreach_*_` apart, and each in-place call counts its tensor's version up, which is how autograd knows
// of writes to what it has saved. The operator itself has no kernel that does.
void CountWrites(at::TensorList updated);

}  // namespace torch_lazy::lazy
