// SPDX-License-Identifier: Apache-2.0
// What takes a recurrent net whole.
//
// PyTorch's composites ask the tensor's device whether a library has a kernel for the whole sequence, and take ours for
// one that has none: a product and a cell for each step. Here what eager would take is taken, and composites do the
// rest.
#include "device/eager_overrides/recurrent_nets.h"

#include <algorithm>

#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>

#include "device/eager_overrides/kernels.h"

namespace torch_lazy::device {
namespace {

using at::Tensor;
using at::TensorList;
using Two = std::tuple<Tensor, Tensor>;

// The whole has no derivative in forward mode, and none of unusual tensors.
bool IsUsual(const Tensor& tensor) {
  return tensor.is_privateuseone() && tensor.layout() == at::kStrided && !tensor._fw_grad(/*level=*/0).defined();
}

std::optional<RecurrentResult> Whole(const RecurrentNet& net) {
  const bool is_usual = IsUsual(net.input) && IsUsual(net.hx) && (!net.cx.defined() || IsUsual(net.cx)) &&
                        std::all_of(net.weights.begin(), net.weights.end(), IsUsual);
  if (!is_usual || net.weights.empty() || net.hx.dim() != 3 || (net.cx.defined() && net.cx.dim() != 3))
    return std::nullopt;
  std::optional<RecurrentResult> result = ByCudnn(net);
  return result.has_value() ? std::move(result) : ByOneDnn(net);
}

RecurrentResult Lstm(const Tensor& input, TensorList hx, TensorList weights, bool has_biases, int64_t num_layers,
                     double dropout, bool train, bool bidirectional, bool batch_first) {
  if (hx.size() == 2) {
    if (auto result = Whole({input, hx[0], hx[1], weights, RnnMode::kLstm, has_biases, num_layers, dropout, train,
                             bidirectional, batch_first})) {
      return *std::move(result);
    }
  }
  return at::native::lstm(input, hx, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

RecurrentResult PackedLstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList weights,
                           bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
  if (hx.size() == 2) {
    if (auto result =
            Whole({data, hx[0], hx[1], weights, RnnMode::kLstm, has_biases, num_layers, dropout, train, bidirectional,
                   /*batch_first=*/false, batch_sizes})) {
      return *std::move(result);
    }
  }
  return at::native::lstm(data, batch_sizes, hx, weights, has_biases, num_layers, dropout, train, bidirectional);
}

using Native = Two (*)(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool);
using PackedNative = Two (*)(const Tensor&, const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool,
                             bool);

template <RnnMode mode, Native native>
Two Simple(const Tensor& input, const Tensor& hx, TensorList weights, bool has_biases, int64_t num_layers,
           double dropout, bool train, bool bidirectional, bool batch_first) {
  if (auto result = Whole(
          {input, hx, Tensor(), weights, mode, has_biases, num_layers, dropout, train, bidirectional, batch_first})) {
    return {std::get<0>(*result), std::get<1>(*result)};
  }
  return native(input, hx, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

template <RnnMode mode, PackedNative native>
Two PackedSimple(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList weights, bool has_biases,
                 int64_t num_layers, double dropout, bool train, bool bidirectional) {
  if (auto result = Whole({data, hx, Tensor(), weights, mode, has_biases, num_layers, dropout, train, bidirectional,
                           /*batch_first=*/false, batch_sizes})) {
    return {std::get<0>(*result), std::get<1>(*result)};
  }
  return native(data, batch_sizes, hx, weights, has_biases, num_layers, dropout, train, bidirectional);
}

}  // namespace

void RegisterRecurrentNets(torch::Library& aten) {
  aten.impl("lstm.input", TORCH_FN(Lstm));
  aten.impl("lstm.data", TORCH_FN(PackedLstm));
  aten.impl("gru.input", TORCH_FN((Simple<RnnMode::kGru, &at::native::gru>)));
  aten.impl("gru.data", TORCH_FN((PackedSimple<RnnMode::kGru, &at::native::gru>)));
  aten.impl("rnn_tanh.input", TORCH_FN((Simple<RnnMode::kTanh, &at::native::rnn_tanh>)));
  aten.impl("rnn_tanh.data", TORCH_FN((PackedSimple<RnnMode::kTanh, &at::native::rnn_tanh>)));
  aten.impl("rnn_relu.input", TORCH_FN((Simple<RnnMode::kRelu, &at::native::rnn_relu>)));
  aten.impl("rnn_relu.data", TORCH_FN((PackedSimple<RnnMode::kRelu, &at::native::rnn_relu>)));
}

}  // namespace torch_lazy::device
