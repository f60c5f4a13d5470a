// SPDX-License-Identifier: Apache-2.0
// The graph of a trace being written: which value each slot holds at this point of the program.
#pragma once

#include <vector>

#include "ir/builder.h"
#include "lazy/lower/lowered_trace.h"
#include "lazy/lower/strided_views.h"
#include "lazy/lower/symbols.h"

namespace torch_lazy::lazy {

class GraphWriter {
 public:
  GraphWriter(const Trace& trace, LoweredTrace* lowered, size_t num_calls);

  ir::Builder& builder() { return builder_; }
  SymbolTable& symbols() { return symbols_; }
  const Trace& trace() const { return trace_; }

  // The tensor of this geometry as a value with logical dims; kNoValue if it cannot be said in views.
  ir::Value Read(int32_t slot, const Geometry& geometry);
  // True if writing through the geometry replaces all of the slot.
  bool CanWrite(int32_t slot, const Geometry& geometry) const;
  void Write(int32_t slot, const Geometry& geometry, ir::Value logical);
  // A number given at run time: an argument of the call.
  ir::Value Number(const TrieNode& call, int arg, int item, bool integer);

  // Appends the call as one that ATen runs on whole slots. False for dtypes that graphs do not know.
  bool AppendCall(const TrieNode& call, size_t k);

  // Live slots become the outputs.
  bool Finish(const std::vector<bool>& live);

 private:
  // The slot's value; a parameter if the trace has not written it yet. Null for an unknown dtype.
  const MemoryValue* Current(int32_t slot, const Geometry& first_seen);
  size_t SizeBytesOf(int32_t slot) const { return trace_.slots[slot].size_bytes; }

  const Trace& trace_;
  LoweredTrace& lowered_;
  ir::Builder builder_;
  SymbolTable symbols_;
  std::vector<MemoryValue> values_;     // per slot
  std::vector<int32_t> param_of_slot_;  // -1: none
};

}  // namespace torch_lazy::lazy
