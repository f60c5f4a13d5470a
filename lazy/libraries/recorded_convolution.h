// SPDX-License-Identifier: Apache-2.0
// A recorded call of aten::convolution as a packed convolution of its graph.
#pragma once

#include <optional>

#include "lazy/lower/graph_writer.h"
#include "lazy/lower/packed_convolution.h"

namespace torch_lazy::lazy {

// What the call is if it is a convolution that has a packed form: not transposed; on the host, of images in f32.
std::optional<PackedConvolution::Form> PackedFormOf(const Trace& trace, const TrieNode& call);

// Appends call k in its packed form. False if an operand cannot be read.
bool AppendPacked(GraphWriter* writer, const TrieNode& call, size_t k, const PackedConvolution::Form& form);

}  // namespace torch_lazy::lazy
