// SPDX-License-Identifier: Apache-2.0
// Lowers one call by its row.
#pragma once

#include "lazy/lower/graph_writer.h"
#include "lazy/trace/trie.h"

namespace torch_lazy::lazy {

// False, and nothing the program can see is written, if the call has no row or its row cannot lower it.
bool LowerCall(GraphWriter* writer, const TrieNode& call);

}  // namespace torch_lazy::lazy
