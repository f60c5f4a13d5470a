// SPDX-License-Identifier: Apache-2.0
// One call as the recorder sees it: its operands, and the words that tell it from other calls.
//
// The words hold everything that decides what the call does to memory except which storages it touches and the values
// of its run-time numbers: operator, dtypes, sizes, strides, offsets, structural arguments.
#pragma once

#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include "lazy/ops/op.h"
#include "lazy/trace/storage.h"

namespace torch_lazy::lazy {

struct CallOperand {
  LazyStorageImpl* storage;
  c10::TensorImpl* tensor;  // borrowed from the stack
  int32_t item;             // position in a tensor list, -1 for a tensor argument
  int16_t arg;
  bool written;
};

// A number given at run time: it belongs to the trace, not to its path.
struct CallNumber {
  int16_t arg;
  c10::IValue value;  // a number; a 0-dim CPU tensor; or a list with some of these, its device tensors undefined
};

struct CallDescription {
  c10::SmallVector<int64_t, 128> words;
  c10::SmallVector<CallOperand, 8> operands;
  c10::SmallVector<int32_t, 8> offset_words;  // per operand: which word is its storage offset
  c10::SmallVector<CallNumber, 4> numbers;
  bool recordable = true;
};

}  // namespace torch_lazy::lazy
