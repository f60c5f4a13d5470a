// SPDX-License-Identifier: Apache-2.0
// In what a trace differs from those that are known, as a reader says it.
#pragma once

#include <string>

#include "lazy/host/source_line.h"

namespace torch_lazy::lazy {

class Trace;
struct TrieNode;

// The first call of a trace that was new to the trie at its place.
struct Divergence {
  const TrieNode* now = nullptr;    // null: all were known
  const TrieNode* known = nullptr;  // what came there the last time; null: known traces ended there
  Line line;
};

// "call 17, aten::add.Tensor: argument `self` is float32[3, 4] where it was float32[5, 4]"
std::string DifferenceOf(const Trace& trace);

}  // namespace torch_lazy::lazy
