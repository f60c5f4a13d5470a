// SPDX-License-Identifier: Apache-2.0
// Convolutions whose weights stay, of images that lie channels-last: oneDNN's own order of the weight, and on a GPU
// cuDNN's convolution with what follows it.
//
// They stand in graphs as calls of these names: (x, weight, bias?) or, where they add to what is there, (x, sum,
// weight, bias?); with ReLU, relu(conv(x) + sum + bias): (x, weight, bias) or (x, sum, weight, bias); as a summand,
// whose bias such a one has taken: (x, weight). x, sum and result are [n, h, w, c]. What lazy/variants/freeze makes of
// such a graph has no weights and biases any more.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "lazy/eager/geometry.h"
#include "lazy/trace/trace.h"

namespace torch_lazy::lazy {

class GraphWriter;

inline constexpr char kPackedConvolution[] = "packed_convolution";
inline constexpr char kPackedConvolutionRelu[] = "packed_convolution_relu";
inline constexpr char kPackedSummand[] = "packed_summand";
inline bool Calls(const ir::Node& node, absl::string_view callee) {
  return node.op == ir::Op::kCall && node.attrs.callee == callee;
}
inline bool HasRelu(const ir::Node& node) { return Calls(node, kPackedConvolutionRelu); }
inline bool IsSummand(const ir::Node& node) { return Calls(node, kPackedSummand); }
inline bool IsPacked(const ir::Node& node) {
  return Calls(node, kPackedConvolution) || HasRelu(node) || IsSummand(node);
}

// Its operands before the weight, while it has one: images, and what it adds to.
inline size_t NumImages(const ir::Node& packed) {
  if (HasRelu(packed)) return packed.inputs.size() - 2;
  return packed.attrs.inout[0] >= 0 ? 2 : 1;
}

struct PackedConvolution {
  struct Form {
    std::vector<int64_t> stride, padding, dilation;
    int64_t groups = 1;
    Geometry x, result;  // channels-last
    Geometry weight;     // [c, c of x / groups, h, w], contiguous; on a GPU channels-last
    bool has_bias = false;
    friend bool operator==(const Form&, const Form&) = default;
  };
  Form form;
  int64_t call;  // which one of the trace it is
  bool has_relu;
  size_t same_as;  // the convolution that has the same weight and bias; itself if there is none before it
  at::Tensor packed_weight, bias;  // once they are known
  double saves = 0;                // seconds of each run, as far as they were measured

  // Content of [c, ...] weight and [c] bias, which is null if there is none.
  void Pack(const c10::Storage& weight_content, const c10::Storage& bias_content);
  // The content of the result: new memory, or without ReLU `sum`, if it is not null, with the convolution added.
  c10::Storage Run(const c10::Storage& x_content, const c10::Storage& sum) const;
};

// The content of what ATen has made, copied if it does not lie like this, channels-last.
c10::Storage ContentOf(const at::Tensor& made, const Geometry& geometry);

// True if cuDNN is to do them, with ReLU; else oneDNN.
bool PacksForCudnn();

// True if that library is there and wanted.
bool CanPackConvolutions();

// What the call is if it is a convolution that has a packed form: not transposed; on the host, of images in f32.
std::optional<PackedConvolution::Form> PackedFormOf(const Trace& trace, const TrieNode& call);

// Appends call k in its packed form. False if an operand cannot be read.
bool AppendPacked(GraphWriter* writer, const TrieNode& call, size_t k, const PackedConvolution::Form& form);

}  // namespace torch_lazy::lazy
