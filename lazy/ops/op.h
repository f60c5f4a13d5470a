// SPDX-License-Identifier: Apache-2.0
// One overload of an operator, as the recorder knows it: its schema, its tags, and what its row says.
//
// Note [Failing calls]
// An error that depends on values is raised when the trace runs. Then storages must hold what they held before the call
// that fails, as if the program had stopped there. The interpreter runs calls in the program's order, so this is what
// it leaves. A plan runs them in another: it first copies each storage that it overwrites before a call that may fail,
// and puts the copies back when one does; the interpreter then finds the first call of the program that fails. What the
// program made after it never gets a value: its storages stay with the failed trace, which says so to whoever reads
// them. On a GPU an index out of range is no such error: the kernel traps, and no call comes back from that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "base/metrics.h"
#include "lazy/eager/eager_device.h"
#include "lazy/ops/rows.h"

namespace torch_lazy::lazy {

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

  bool Has(RowFlags flag) const { return facts.Has(flag); }
  // May refuse values when it runs on the current device: an index out of range, a singular matrix.
  bool may_fail() const { return may_fail_ && !(Has(kTrapsOnGpu) && EagerDevice().is_cuda()); }
  bool is_lowered() const { return facts.row != nullptr && facts.row->lower != nullptr; }

  c10::OperatorHandle handle;
  std::string name;                   // as in rows
  std::atomic<int64_t>& num_at_once;  // how often it ran at once
  uint32_t id = 0;
  uint64_t name_hash = 0;  // the same in each process
  Facts facts;
  Runner runner = nullptr;
  ShapeRule shape_rule = nullptr;  // see shape_rule.h
  bool irregular = false;          // it draws, changes the geometry of a tensor, or does what its schema does not say
  bool immediate = false;          // never recorded: irregular, or values tell the shape of its result
  bool dynamic_by_mask = false;    // truth values among its operands tell the shape of its result
  bool random = false;             // draws from a generator
  bool has_meta = false;           // a Meta kernel gives shapes and errors exactly as eager's
  bool pointwise = false;
  std::vector<Arg> args;
  std::vector<int> return_alias;    // per return: index of the written argument it is, -1 for a new tensor
  int seed_arg = -1;                // of those that take one: which number is the seed; the next is the offset
  bool tensor_results = true;       // all returns are tensors or lists of tensors
  bool writes = false;              // some argument is written
  bool writes_exactly = false;      // and what it writes are the same bits on each device
  bool takes_tensors = false;       // some argument, `out=` aside, is a tensor or a list of tensors
  bool updates_list = false;        // writes each tensor of its first argument, as separate calls would
  bool structural_numbers = false;  // the values of its numbers are part of the path

 private:
  void ReadArguments();
  void ReadResults();
  bool IsIrregular() const;
  bool HasMeta() const;
  bool MayFail() const;

  bool may_fail_ = true;  // on some device
};

// The op of a handle; made on first use, never freed.
const Op& OpOf(const c10::OperatorHandle& handle);

// The op of this name, if it was ever called; else null.
const Op* FindOp(const std::string& name);

// For what updates a list: eager takes it apart, and each in-place call counts its tensor's version up, which is how
// autograd knows of writes to what it has saved. The operator itself has no kernel that does.
void CountWrites(at::TensorList updated);

}  // namespace torch_lazy::lazy
