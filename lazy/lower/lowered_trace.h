// SPDX-License-Identifier: Apache-2.0
// A graph that calls of a trace were lowered to, and where a run of such a trace finds what it reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Storage.h>

#include "ir/graph.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

// Where a run finds the graph's scalar k.
struct NumberSource {
  int32_t place;  // in the trace's numbers
  int32_t item;   // position in a list of numbers, or -1
  bool integer;   // an i64, else an f64
};

struct LoweredTrace {
  ir::Graph graph;                                           // until it has a plan
  std::vector<int64_t> symbols;                              // the number of each symbol
  std::vector<int32_t> param_slots;                          // graph parameter -> slot, or ~k: kept content k
  std::vector<NumberSource> numbers;                         // graph scalar -> number of the trace
  std::vector<int32_t> output_slots;                         // graph output -> slot, likewise
  std::shared_ptr<std::vector<c10::Storage>> kept_contents;  // contents that stay from run to run; null: none
  std::vector<int32_t> by_aten;                              // the calls that did not become primitives
  std::string trace_text;                                    // where option dump asks for it
  std::vector<int32_t> calls;  // once there is a plan, per node of the graph: the call it was made for, or -1
};

// What lies there, for a run on the trace.
inline c10::Storage& ContentAt(const LoweredTrace& lowered, int32_t slot, Trace* trace) {
  return slot >= 0 ? trace->slots[static_cast<size_t>(slot)].content
                   : (*lowered.kept_contents)[static_cast<size_t>(~slot)];
}

// The numbers of a run, per scalar of the graph; integers bit-cast.
std::vector<double> ScalarsOf(const LoweredTrace& lowered, const Trace& trace);

}  // namespace torch_lazy::lazy
