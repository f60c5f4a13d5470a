// SPDX-License-Identifier: Apache-2.0
// What is done to the result of a packed convolution becomes a part of it.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "ir/graph.h"
#include "ir/passes/pass.h"

namespace torch_lazy::lazy {

// Per node: it follows from constant parameters, numbers and constants.
std::vector<bool> FollowFromConstants(const ir::Graph& graph, const std::vector<bool>& constant_params);

// Two passes, whose context says which parameters are constant (ir/passes/pass.h).
//
// `fold_convolutions`, for the CPU: conv(x, w, b) * s + t, where s and t are numbers per channel that follow from
// constant parameters, is conv(x, w * s, b * s + t); conv(x, w, b) + y adds to y's memory. Only where nobody else reads
// the result.
//
// `relu_convolutions`, for cuDNN, whose convolution ends with ReLU: relu(conv(x, w, b) * s + t + y) becomes one call.
// Others stay, but for summands, which are y and read by nobody else, as where images are shrunk for a residual: of
// conv(x, w, b) * s + t, b * s + t is added with the other's. What is computed in f32 and rounded in between is rounded
// once, at the end.
absl::Span<const ir::Pass> ConvolutionPasses();

}  // namespace torch_lazy::lazy
