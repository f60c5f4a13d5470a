// SPDX-License-Identifier: Apache-2.0
// Recurrent nets: PyTorch's lstm, gru, rnn_tanh and rnn_relu, of sequences of one length and packed ones.
#pragma once

#include <optional>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "device/eager_overrides/cudnn_weights.h"

namespace torch_lazy::device {

// The arguments that all of them share.
struct RecurrentNet {
  const at::Tensor&
      input;  // (length, batch, width), or (batch, length, width); (sum of batch_sizes, width) of packed ones
  const at::Tensor& hx;
  at::Tensor cx;  // of an LSTM
  at::TensorList weights;
  RnnMode mode;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first = false;
  std::optional<at::Tensor> batch_sizes = std::nullopt;  // of packed ones, on the host
};
using RecurrentResult = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // output, hy, and cy of an LSTM

// As eager's on CUDA, by cuDNN. Nothing where eager does without, or its random numbers cannot be had.
std::optional<RecurrentResult> ByCudnn(const RecurrentNet& net);

// As eager's LSTMs on the CPU, by oneDNN. Nothing where eager does without.
std::optional<RecurrentResult> ByOneDnn(const RecurrentNet& net);

}  // namespace torch_lazy::device
