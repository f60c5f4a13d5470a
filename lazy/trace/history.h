// SPDX-License-Identifier: Apache-2.0
// What explain() tells of single events: where traces were cut, and what was new about those that were not known.
#pragma once

#include <string>

#include "lazy/host/source_line.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

class Trace;

// Why and where a trace was cut.
struct CutSite {
  const char* reason = "";
  SourceLine line;
  int64_t count = 0;
};

// Places of known traces are to be forgotten; what was counted there stays.
void ForgetSites();

// Of a cut at `end`. The line is asked for once per place and reason. No lock of ours is held. Null: too many places
// already.
const CutSite* NoteCut(const TrieNode* end, const char* reason);

// Of a trace that was not known, whose entry has so many outputs: what differed from the nearest one that was.
void NoteMiss(const Trace& trace, size_t num_outputs);

std::string TextOfHistory();
void ForgetHistory();  // but for the places, which are known from then on

}  // namespace torch_lazy::lazy
