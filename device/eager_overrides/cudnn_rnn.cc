// SPDX-License-Identifier: Apache-2.0
// cuDNN's recurrent nets: ATen's operators for them, said by operators of our own that are recorded as one call.
//
// ATen's take the weights as a list beside the buffer that cuDNN reads, write what their schemas do not tell (the state
// of dropout, what the forward pass reserved), and return gradients that lie in one memory. Ours take the buffer alone
// (cudnn_weights.h), say what they write, and return one gradient for it.
#include <array>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/native/RNN.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/_cudnn_rnn_backward.h>
#include <ATen/ops/empty.h>

#include "device/eager_overrides/cudnn_weights.h"
#include "device/eager_overrides/kernels.h"
#include "device/eager_overrides/runner.h"
#include "device/eager_overrides/runners.h"
#include "lazy/calls/device_of_call.h"
#include "lazy/ops/op.h"

namespace torch_lazy::device {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;
using Ints = std::vector<int64_t>;
using Forward = std::tuple<Tensor, Tensor, Tensor, Tensor>;              // output, hy, cy, what backward needs
using Backward = std::tuple<Tensor, Tensor, Tensor, Tensor>;             // of input, hx, cx, and the buffer of weights
using AtenForward = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;  // the last one: the buffer of weights
using AtenBackward = std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>>;

bool IsDefined(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }
OptionalTensor IfGiven(const OptionalTensor& tensor) { return IsDefined(tensor) ? tensor : std::nullopt; }

// ---- runners, on CUDA ----

// Whether sums of float32 are TF32's is a setting that is asked when the call runs.
class WithTf32 {
 public:
  explicit WithTf32(bool wanted) {
    if (at::globalContext().allowTF32CuDNN(at::Float32Op::RNN) != wanted)
      Set(wanted ? at::Float32Precision::TF32 : at::Float32Precision::IEEE);
  }
  ~WithTf32() {
    if (!changed_) return;
    at::Context& context = at::globalContext();
    // What is asked for may be that of all operators, which the program may change later.
    const bool is_of_all = context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::ALL) == former_;
    context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::RNN,
                                is_of_all ? at::Float32Precision::NONE : former_);
  }
  WithTf32(const WithTf32&) = delete;
  WithTf32& operator=(const WithTf32&) = delete;

 private:
  void Set(at::Float32Precision precision) {
    changed_ = true;
    at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::RNN, precision);
  }
  const at::Float32Precision former_ =
      at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::RNN);
  bool changed_ = false;
};

Forward Run(Tensor input, Tensor weights, Tensor hx, OptionalTensor cx, OptionalTensor dropout_state, int64_t mode,
            int64_t hidden_size, int64_t proj_size, int64_t num_layers, bool batch_first, double dropout, bool train,
            bool bidirectional, Ints batch_sizes, bool tf32) {
  const WithTf32 precision(tf32);
  // Its list of weights is for what has no buffer.
  auto [output, hy, cy, reserve, buffer] =
      at::_cudnn_rnn(input, {weights}, /*weight_stride0=*/1, weights, hx, cx, mode, hidden_size, proj_size, num_layers,
                     batch_first, dropout, train, bidirectional, batch_sizes, dropout_state);
  return {output, hy, cy, reserve};
}

// All of them lie in one memory: the gradient of the buffer.
Tensor WholeOf(const std::vector<Tensor>& gradients, const Tensor& weights) {
  TORCH_INTERNAL_ASSERT(!gradients.empty() && gradients[0].storage().nbytes() == weights.nbytes(),
                        "lazy: cuDNN's gradients of weights do not lie in one buffer");
  return gradients[0].as_strided({weights.numel()}, {1}, 0);
}

Backward RunBackward(Tensor input, Tensor weights, Tensor hx, OptionalTensor cx, Tensor output,
                     OptionalTensor grad_output, OptionalTensor grad_hy, OptionalTensor grad_cy,
                     OptionalTensor dropout_state, Tensor reserve, int64_t mode, int64_t hidden_size, int64_t proj_size,
                     int64_t num_layers, bool batch_first, double dropout, bool train, bool bidirectional,
                     Ints batch_sizes, std::array<bool, 4> wanted, bool tf32) {
  const WithTf32 precision(tf32);
  // With as many to a layer as cuDNN has, the gradients are views of one buffer. They take the sizes of these weights:
  // none.
  const int64_t per_layer = proj_size != 0 ? 5 : 4;
  const std::vector<Tensor> sizes(static_cast<size_t>(per_layer * num_layers * (bidirectional ? 2 : 1)),
                                  at::empty({0}, weights.options()));
  auto [grad_input, grad_hx, grad_cx, gradients] = at::_cudnn_rnn_backward(
      input, sizes, per_layer, weights, hx, cx, output, grad_output, grad_hy, grad_cy, mode, hidden_size, proj_size,
      num_layers, batch_first, dropout, train, bidirectional, batch_sizes, dropout_state, reserve, wanted);
  return {grad_input, grad_hx, grad_cx, wanted[3] ? WholeOf(gradients, weights) : Tensor()};
}

// ---- ATen's operators ----

RnnForm FormOf(const Tensor& input, int64_t mode, const c10::SymInt& hidden_size, const c10::SymInt& proj_size,
               int64_t num_layers, bool bidirectional) {
  return {static_cast<RnnMode>(mode), input.size(-1), hidden_size.expect_int(),
          proj_size.expect_int(),     num_layers,     bidirectional};
}

Ints IntsOf(c10::SymIntArrayRef numbers) {
  Ints ints;
  for (const c10::SymInt& number : numbers) ints.push_back(number.expect_int());
  return ints;
}

bool AllowsTf32() { return at::globalContext().allowTF32CuDNN(at::Float32Op::RNN); }

// What cuDNN, and ATen before it, refuse.
void CheckStates(const Tensor& input, const Tensor& hx, const OptionalTensor& cx, const RnnForm& form,
                 const Ints& batch_sizes, bool batch_first) {
  const bool is_lstm = form.mode == RnnMode::kLstm;
  TORCH_CHECK(is_lstm || !cx.has_value(), "rnn: illegal defined cx for non-LSTM RNN");
  TORCH_CHECK(!is_lstm || cx.has_value(), "rnn: an LSTM wants cx");
  TORCH_CHECK(hx.is_contiguous(), "rnn: hx is not contiguous");
  TORCH_CHECK(!cx.has_value() || cx->is_contiguous(), "rnn: cx is not contiguous");
  const int64_t batch = batch_sizes.empty() ? input.size(batch_first ? 0 : 1) : batch_sizes[0];
  const auto check = [&](const char* what, const Tensor& state, int64_t width) {
    const std::array<int64_t, 3> sizes = {form.num_layers * form.num_directions(), batch, width};
    TORCH_CHECK(state.sizes() == at::IntArrayRef(sizes), "Expected ", what, " size ", at::IntArrayRef(sizes), ", got ",
                state.sizes());
  };
  check("hidden", hx, form.output_size());
  if (cx.has_value()) check("cell", *cx, form.hidden_size);
}

AtenForward CudnnRnn(const Tensor& input, at::TensorList weights, int64_t per_layer, const OptionalTensor& buffer,
                     const Tensor& hx, const OptionalTensor& any_cx, int64_t mode, c10::SymInt hidden_size,
                     c10::SymInt proj_size, int64_t num_layers, bool batch_first, double dropout, bool train,
                     bool bidirectional, c10::SymIntArrayRef sym_batch_sizes, const OptionalTensor& dropout_state) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("torch_lazy::cudnn_rnn", "")
          .typed<Forward(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&, const OptionalTensor&,
                         int64_t, int64_t, int64_t, int64_t, bool, double, bool, bool, at::IntArrayRef, bool)>();
  const lazy::OnDevice on(lazy::DeviceOf(input));
  const OptionalTensor cx = IfGiven(any_cx);
  at::native::check_attributes(input, weights, {hx, cx.value_or(Tensor())}, /*check_dtype=*/true);
  const RnnForm form = FormOf(input, mode, hidden_size, proj_size, num_layers, bidirectional);
  const Ints batch_sizes = IntsOf(sym_batch_sizes);
  CheckStates(input, hx, cx, form, batch_sizes, batch_first);
  const Tensor packed = IsDefined(buffer) ? *buffer : PackWeights(weights, LayoutOf(form, weights, per_layer));
  auto [output, hy, cy, reserve] =
      op.call(input, packed, hx, cx, IfGiven(dropout_state), mode, form.hidden_size, form.proj_size, num_layers,
              batch_first, dropout, train, bidirectional, batch_sizes, AllowsTf32());
  return {output, hy, cy, reserve, packed};
}

AtenBackward CudnnRnnBackward(const Tensor& input, at::TensorList weights, int64_t per_layer, const Tensor& packed,
                              const Tensor& hx, const OptionalTensor& cx, const Tensor& output,
                              const OptionalTensor& grad_output, const OptionalTensor& grad_hy,
                              const OptionalTensor& grad_cy, int64_t mode, c10::SymInt hidden_size,
                              c10::SymInt proj_size, int64_t num_layers, bool batch_first, double dropout, bool train,
                              bool bidirectional, c10::SymIntArrayRef batch_sizes, const OptionalTensor& dropout_state,
                              const Tensor& reserve, std::array<bool, 4> wanted) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("torch_lazy::cudnn_rnn_backward", "")
          .typed<Backward(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&, const Tensor&,
                          const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                          const Tensor&, int64_t, int64_t, int64_t, int64_t, bool, double, bool, bool, at::IntArrayRef,
                          std::array<bool, 4>, bool)>();
  if (!IsDefined(grad_output) && !IsDefined(grad_hy) && !IsDefined(grad_cy))
    return {Tensor(), Tensor(), Tensor(), std::vector<Tensor>(weights.size())};
  TORCH_CHECK(train, "cudnn RNN backward can only be called in training mode");
  const lazy::OnDevice on(lazy::DeviceOf(input));
  const RnnForm form = FormOf(input, mode, hidden_size, proj_size, num_layers, bidirectional);
  auto [grad_input, grad_hx, grad_cx, grad_packed] =
      op.call(input, packed, hx, IfGiven(cx), output, IfGiven(grad_output), IfGiven(grad_hy), IfGiven(grad_cy),
              IfGiven(dropout_state), reserve, mode, form.hidden_size, form.proj_size, num_layers, batch_first, dropout,
              train, bidirectional, IntsOf(batch_sizes), wanted, AllowsTf32());
  std::vector<Tensor> gradients;
  if (wanted[3]) gradients = UnpackWeights(grad_packed, weights, LayoutOf(form, weights, per_layer));
  return {grad_input, grad_hx, grad_cx, std::move(gradients)};
}

// Under autocast CUDA's takes float16, whatever type autocast was asked for.
AtenForward InHalf(const Tensor& input, at::TensorList weights, int64_t per_layer, const OptionalTensor& buffer,
                   const Tensor& hx, const OptionalTensor& cx, int64_t mode, c10::SymInt hidden_size,
                   c10::SymInt proj_size, int64_t num_layers, bool batch_first, double dropout, bool train,
                   bool bidirectional, c10::SymIntArrayRef batch_sizes, const OptionalTensor& dropout_state) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  const auto in_half = [](const auto& tensor) {
    return at::autocast::cached_cast(at::kHalf, tensor, at::kPrivateUse1);
  };
  for (const Tensor& weight : weights)
    TORCH_CHECK(weight.scalar_type() == weights[0].scalar_type(), "Weight scalar types do not match.");
  std::vector<Tensor> halves(weights.begin(), weights.end());
  const bool are_cast =
      at::autocast::is_eligible(weights[0], at::kPrivateUse1) && weights[0].scalar_type() != at::kHalf;
  if (are_cast) {
    for (Tensor& weight : halves) weight = weight.to(at::kHalf);
  }
  return at::_cudnn_rnn_symint(in_half(input), halves, per_layer, are_cast ? OptionalTensor() : buffer, in_half(hx),
                               in_half(cx), mode, hidden_size, proj_size, num_layers, batch_first, dropout, train,
                               bidirectional, batch_sizes, dropout_state);
}

}  // namespace

void RunCudnnRnn(torch::jit::Stack* stack) { Runner<Run>(stack); }
void RunCudnnRnnBackward(torch::jit::Stack* stack) { Runner<RunBackward>(stack); }

void RegisterCudnnRnn(torch::Library& aten) {
  aten.impl("_cudnn_rnn", TORCH_FN(CudnnRnn));
  aten.impl("_cudnn_rnn_backward", TORCH_FN(CudnnRnnBackward));
}

void RegisterCudnnRnnAutocast(torch::Library& aten) { aten.impl("_cudnn_rnn", TORCH_FN(InHalf)); }

}  // namespace torch_lazy::device
