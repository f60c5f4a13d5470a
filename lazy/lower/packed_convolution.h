// SPDX-License-Identifier: Apache-2.0
// Convolutions whose weights stay, of images that lie channels-last: oneDNN's own order of the weight, and on a GPU
// cuDNN's convolution with what follows it.
//
// They stand in graphs as calls of these names: (x, weight, bias?) or, where they add to what is there, (x, sum,
// weight, bias?); with ReLU, relu(conv(x) + sum + bias): (x, weight, bias) or (x, sum, weight, bias); as a summand,
// whose bias such a one has taken: (x, weight). x, sum and result are [n, h, w, c]. What lazy/variants/freeze makes of
// such a graph has no weights and biases any more.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "lazy/eager/geometry.h"

namespace torch_lazy::lazy {

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
};

// The content of what ATen has made, copied if it does not lie like this, channels-last.
c10::Storage ContentOf(const at::Tensor& made, const Geometry& geometry);

}  // namespace torch_lazy::lazy
