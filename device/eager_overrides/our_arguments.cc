// SPDX-License-Identifier: Apache-2.0
#include "device/eager_overrides/our_arguments.h"

#include <vector>

#include <ATen/core/Tensor.h>

namespace torch_lazy::device {
namespace {

constexpr int64_t kForms = 3;  // of attention (fused_attention.h)

// Tensors of (batch, heads, length, width).
void CheckDims(const char* name, const torch::jit::Stack& arguments, size_t num_tensors) {
  for (size_t i = 0; i < num_tensors; ++i) {
    TORCH_CHECK_VALUE(arguments[i].toTensor().dim() == 4, name, ": expected tensors of 4 dims, got one of ",
                      arguments[i].toTensor().dim());
  }
}

void CheckForm(const char* name, const c10::IValue& form) {
  TORCH_CHECK_VALUE(form.toInt() >= 0 && form.toInt() < kForms, name, ": there is no form ", form.toInt());
}

void CheckDraw(const char* name, const c10::IValue& seed, const c10::IValue& offset) {
  TORCH_CHECK_VALUE(seed.isNone() == offset.isNone(), name, ": a seed goes with an offset");
  TORCH_CHECK_VALUE(seed.isNone() || (seed.toScalar().isIntegral(false) && offset.toScalar().isIntegral(false)), name,
                    ": a seed and an offset are integers");
}

// (.., mode, hidden_size, proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes, ..), where
// the mode is at `mode`; the input and the buffer of weights come first. The buffer holds at least the matrices of all
// layers.
void CheckNet(const char* name, const torch::jit::Stack& arguments, size_t mode) {
  constexpr int64_t kGates[] = {1, 1, 4, 3};  // of ReLU, tanh, LSTM and GRU, in cuDNN's order
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto number = [&](size_t k) { return arguments[mode + k].toInt(); };
  TORCH_CHECK_VALUE(number(0) >= 0 && number(0) < 4, name, ": there is no mode ", number(0));
  const int64_t hidden = number(1), proj = number(2), layers = number(3),
                directions = arguments[mode + 7].toBool() ? 2 : 1;
  TORCH_CHECK_VALUE(hidden > 0 && hidden < kMost && proj >= 0 && proj < kMost && layers > 0 && layers < kMost, name,
                    ": expected sizes above zero, got ", hidden, ", ", proj, " and ", layers, " layers");
  const at::Tensor& input = arguments[0].toTensor();
  const int64_t dims = arguments[mode + 8].toIntVector().empty() ? 3 : 2;
  TORCH_CHECK_VALUE(input.dim() == dims, name, ": expected an input of ", dims, " dims, got one of ", input.dim());
  const int64_t out = proj != 0 ? proj : hidden;
  const double first = static_cast<double>(input.size(-1)), later = static_cast<double>(directions * out);
  const double columns = first + later * static_cast<double>(layers - 1) + static_cast<double>(layers * out);
  const double fewest = static_cast<double>(kGates[number(0)] * hidden * directions) * columns;
  TORCH_CHECK_VALUE(static_cast<double>(arguments[1].toTensor().numel()) >= fewest, name,
                    ": the buffer of weights is too small");
}

}  // namespace

// (result, start, end, step)
void CheckArange(const torch::jit::Stack& arguments) {
  TORCH_CHECK_VALUE(arguments[0].toTensor().dim() == 1, "arange: expected a result of one dim");
  for (size_t i = 1; i <= 3; ++i)
    TORCH_CHECK_VALUE(!arguments[i].toScalar().isComplex(), "arange: expected real numbers");
}

// (query, key, value, bias, form, keeps_sums, is_causal, scale, dropout, seed, offset)
void CheckAttention(const torch::jit::Stack& arguments) {
  CheckDims("attention", arguments, 3);
  CheckForm("attention", arguments[4]);
  CheckDraw("attention", arguments[9], arguments[10]);
}

// (grad, query, key, value, bias, out, sums, draw, form, wanted, is_causal, scale, dropout, seed, offset)
void CheckAttentionBackward(const torch::jit::Stack& arguments) {
  CheckDims("attention_backward", arguments, 4);
  CheckForm("attention_backward", arguments[8]);
  CheckDraw("attention_backward", arguments[13], arguments[14]);
}

// (input, weights, hx, cx, dropout_state, mode, ..)
void CheckCudnnRnn(const torch::jit::Stack& arguments) { CheckNet("cudnn_rnn", arguments, 5); }

// (input, weights, hx, cx, output, grad_output, grad_hy, grad_cy, dropout_state, reserve, mode, ..)
void CheckCudnnRnnBackward(const torch::jit::Stack& arguments) { CheckNet("cudnn_rnn_backward", arguments, 10); }

// (input, p, scale, threshold, seed, offset, threads, width, order)
void CheckDropout(const torch::jit::Stack& arguments) {
  for (size_t i = 3; i <= 6; ++i)
    TORCH_CHECK_VALUE(arguments[i].toScalar().isIntegral(false), "dropout: expected integers");
  const int64_t threads = arguments[6].toScalar().toLong(), width = arguments[7].toInt();
  TORCH_CHECK_VALUE(threads > 0 && threads <= int64_t{1} << 32, "dropout: expected a number of threads, got ", threads);
  TORCH_CHECK_VALUE(width == 1 || width == 2 || width == 4 || width == 8,
                    "dropout: expected a width of 1, 2, 4 or 8, got ", width);
  const std::vector<int64_t> order = arguments[8].toIntVector();
  std::vector<bool> seen(static_cast<size_t>(arguments[0].toTensor().dim()));
  TORCH_CHECK_VALUE(order.size() == seen.size(), "dropout: expected an order of ", seen.size(), " dims, got ",
                    order.size());
  for (const int64_t dim : order) {
    const bool is_new = dim >= 0 && dim < static_cast<int64_t>(seen.size()) && !seen[static_cast<size_t>(dim)];
    TORCH_CHECK_VALUE(is_new, "dropout: the order of dims has ", dim, " twice, or there is no such dim");
    seen[static_cast<size_t>(dim)] = true;
  }
}

}  // namespace torch_lazy::device
