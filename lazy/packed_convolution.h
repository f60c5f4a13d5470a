// SPDX-License-Identifier: Apache-2.0
// Convolutions whose weights stay: oneDNN's own order of the weight, images channels-last.
//
// They stand in graphs as calls of this name: (x, weight, bias?) or, where they add to what is there, (x, sum, weight, bias?).
// x, sum and result are [n, h, w, c]. What lazy/freeze makes of such a graph has no weights and biases any more.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "lazy/geometry.h"
#include "lazy/trace.h"

namespace torch_lazy::lazy {

class GraphWriter;

inline constexpr char kPackedConvolution[] = "packed_convolution";
inline bool IsPacked(const ir::Node& node) { return node.op == ir::Op::kCall && node.attrs.callee == kPackedConvolution; }

struct PackedConvolution {
  struct Form {
    std::vector<int64_t> stride, padding, dilation;
    int64_t groups = 1;
    Geometry x, result;  // channels-last
    Geometry weight;     // [c, c of x / groups, h, w], contiguous
    bool has_bias = false;
    friend bool operator==(const Form&, const Form&) = default;
  };
  Form form;
  int64_t call;    // which one of the trace it is
  size_t same_as;  // the convolution that has the same weight and bias; itself if there is none before it
  at::Tensor packed_weight, bias;  // once they are known

  // Content of [c, ...] weight and [c] bias, which is null if there is none.
  void Pack(const c10::Storage& weight_content, const c10::Storage& bias_content);
  // The content of the result: new memory, or `sum`, if it is not null, with the convolution added.
  c10::Storage Run(const c10::Storage& x_content, const c10::Storage& sum) const;
};

// True if oneDNN is there and wanted.
bool CanPackConvolutions();

// What the call is if it is a convolution that has a packed form: of images in f32, not transposed.
std::optional<PackedConvolution::Form> PackedFormOf(const Trace& trace, const TrieNode& call);

// Appends call k in its packed form. False if an operand cannot be read.
bool AppendPacked(GraphWriter* writer, const TrieNode& call, size_t k, const PackedConvolution::Form& form);

}  // namespace torch_lazy::lazy
