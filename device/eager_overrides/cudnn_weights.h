// SPDX-License-Identifier: Apache-2.0
// The weights of a recurrent net as cuDNN takes them: in one buffer.
//
// Eager moves a module's parameters into such a buffer, where they stay. Ours stay where they are, and each call's
// buffer is a `cat` of them, which fuses with what they are cast to. Where cuDNN wants which one is asked of it, once
// for each kind of net.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch_lazy::device {

// cuDNN's numbers.
enum class RnnMode : int64_t { kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3 };

struct RnnForm {
  RnnMode mode;
  int64_t input_size, hidden_size, proj_size, num_layers;  // proj_size: 0 without projections
  bool bidirectional;

  int64_t num_directions() const { return bidirectional ? 2 : 1; }
  int64_t output_size() const { return proj_size != 0 ? proj_size : hidden_size; }  // of one direction
};

struct WeightsLayout {
  int64_t count = 0;             // elements of the buffer
  std::vector<int64_t> offsets;  // per weight
};

// Of these weights, `per_layer` to each layer and direction. Throws where a weight has not the size that the net wants.
WeightsLayout LayoutOf(const RnnForm& form, at::TensorList weights, int64_t per_layer);

// The buffer, zero where no weight lies.
at::Tensor PackWeights(at::TensorList weights, const WeightsLayout& layout);

// The way back: a tensor of its own for each weight.
std::vector<at::Tensor> UnpackWeights(const at::Tensor& buffer, at::TensorList weights, const WeightsLayout& layout);

}  // namespace torch_lazy::device
