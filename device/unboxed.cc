// SPDX-License-Identifier: Apache-2.0
#include "device/unboxed.h"

#include <tuple>
#include <type_traits>
#include <variant>

#include <ATen/Operators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "absl/container/flat_hash_map.h"
#include "device/fork.h"
#include "device/no_grad.h"
#include "lazy/calls/device_of_call.h"
#include "lazy/record/call_at_once.h"
#include "lazy/record/prediction.h"
#include "lazy/record/record.h"
#include "lazy/run/run_on_aliases.h"

namespace torch_lazy::device {
namespace {

// The written argument, which an in-place or `out=` form returns.
template <typename First, typename... Rest>
at::Tensor& Written(First& first, Rest&... rest) {
  if constexpr (std::is_same_v<First, at::Tensor>)
    return first;
  else
    return Written(rest...);
}

template <typename Operator, typename Signature = typename Operator::schema>
struct Unboxed;

template <typename Operator, typename R, typename... Args>
struct Unboxed<Operator, R(Args...)> {
  static constexpr bool kReturnsNew = !std::is_reference_v<R> && !std::is_void_v<R>;
  using Made = std::conditional_t<kReturnsNew, R, std::monostate>;

  // Below autograd.
  static R Record(Args... args) {
    std::optional<Made> made = Predict(args...);
    if constexpr (std::is_reference_v<R>) {
      return made ? Written(args...) : Box(std::forward<Args>(args)...);
    } else {
      return made ? Return(std::move(made)) : Box(std::forward<Args>(args)...);
    }
  }

  // In autograd's place: see no_grad.h.
  static R RecordWithoutGrad(c10::DispatchKeySet keys, Args... args) {
    if (!MayPassAutograd(keys) || (... || NeedsAutograd(args))) {
      return Operator::redispatch(ThroughAutograd(keys), std::forward<Args>(args)...);
    }
    std::optional<Made> made = Predict(args...);
    if constexpr (std::is_reference_v<R>) {
      if (!made) BoxBelowAutograd(std::forward<Args>(args)...);
      Written(args...).unsafeGetTensorImpl()->bump_version();
      return Written(args...);
    } else {
      return made ? Return(std::move(made)) : BoxBelowAutograd(std::forward<Args>(args)...);
    }
  }

 private:
  C10_NOINLINE static R BoxBelowAutograd(Args... args) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return Box(std::forward<Args>(args)...);
  }

  C10_NOINLINE static R Box(Args... args) {
    torch::jit::Stack stack = c10::impl::boxArgs<Args...>(std::forward<Args>(args)...);
    lazy::Call(TheOp(), &stack);
    if constexpr (std::is_reference_v<R>)
      return Written(args...);
    else if constexpr (kReturnsNew)
      return c10::impl::PopResult<R>::call(stack);
  }

  static const lazy::Op& TheOp() {
    static const lazy::Op& op =
        lazy::OpOf(c10::Dispatcher::singleton().findSchemaOrThrow(Operator::name, Operator::overload_name));
    return op;
  }

  // Nothing unless the call is the one that came next the last time.
  C10_ALWAYS_INLINE static std::optional<Made> Predict(const Args&... args) {
    CheckFork();
    const lazy::Op& op = TheOp();
    const lazy::OnDevice on(lazy::DeviceOfCall(args...));
    std::optional<Made> made;
    lazy::Prediction prediction(op);
    if (!prediction.Holds(args...)) {
      if (prediction.RunsAtOnce()) RunAtOnce(&prediction, &made, args...);
      return made;
    }
    if constexpr (kReturnsNew) {
      made.emplace(prediction.Result<R>());
    } else {
      prediction.Result<void>();
      made.emplace();
    }
    prediction.End();
    if constexpr (std::is_void_v<R>) {
      if (op.updates_list) lazy::CountWrites(std::get<0>(std::tie(args...)));
    }
    return made;
  }

  // Makes nothing if the call has to go the long way.
  C10_NOINLINE static void RunAtOnce(lazy::Prediction* prediction, std::optional<Made>* made, const Args&... args) {
    const lazy::Op& op = TheOp();
    if (!lazy::CallAtOnce::IsFor(op)) return;
    lazy::CallAtOnce call(op);
    std::tuple<decltype(call.Eager(args))...> eager{call.Eager(args)...};
    if (!call.is_short()) return;
    prediction->EndAtOnce();
    call.Count();
    const auto run = [&]() -> decltype(auto) {
      const lazy::RunsEager scope(op);
      const auto call_eager = [&](auto&... arguments) -> decltype(auto) {
        return call.is_plain() ? Operator::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), arguments...)
                               : Operator::call(arguments...);
      };
      return std::apply(call_eager, eager);
    };
    if constexpr (kReturnsNew) {
      made->emplace(call.Lazy(run()));
    } else {
      run();
      made->emplace();
    }
    if constexpr (std::is_void_v<R>) {
      if (op.updates_list) lazy::CountWrites(std::get<0>(std::tie(args...)));
    }
  }

  static R Return(std::optional<Made>&& made) {
    if constexpr (kReturnsNew) return *std::move(made);
  }
};

// X(the name in at::_ops of an operator that is recorded)
// clang-format off
#define TORCH_LAZY_UNBOXED_LIST(X)                                                                                   \
  X(_assert_async_msg) X(_foreach_add__List) X(_foreach_add__Scalar) X(_foreach_addcdiv__Scalar)                     \
  X(_foreach_addcdiv__ScalarList) X(_foreach_addcmul__Scalar) X(_foreach_div__Scalar) X(_foreach_div__ScalarList)    \
  X(_foreach_lerp__Scalar) X(_foreach_mul__List) X(_foreach_mul__Scalar) X(_foreach_mul__Tensor)                     \
  X(_foreach_norm_Scalar) X(_foreach_sqrt) X(_log_softmax) X(_log_softmax_backward_data) X(_native_batch_norm_legit) \
  X(_scaled_dot_product_flash_attention_for_cpu) X(_scaled_dot_product_flash_attention_for_cpu_backward) X(_softmax) \
  X(_softmax_backward_data) X(abs) X(add_Scalar) X(add_Tensor) X(add__Scalar) X(add__Tensor) X(addcdiv) X(addcdiv_)  \
  X(addcmul) X(addcmul_) X(addmm) X(addmv_) X(amax) X(amin) X(any) X(argmax) X(baddbmm) X(bitwise_and_Tensor)        \
  X(bitwise_not) X(bmm) X(cat) X(clamp) X(clamp_min) X(convolution) X(convolution_backward) X(cos) X(cumsum)         \
  X(div_Scalar) X(div_Tensor) X(div__Scalar) X(div__Tensor) X(embedding) X(embedding_dense_backward) X(eq_Scalar)    \
  X(eq_Tensor) X(exp) X(fill__Scalar) X(gather) X(ge_Scalar) X(ge_Tensor) X(gelu) X(gelu_backward) X(gt_Scalar)      \
  X(gt_Tensor) X(index_Tensor) X(index_add_) X(index_select) X(le_Scalar) X(le_Tensor) X(leaky_relu)                 \
  X(leaky_relu_backward) X(lerp__Scalar) X(linalg_vector_norm) X(linear) X(linear_backward) X(log) X(logical_and)    \
  X(logical_not) X(lt_Scalar) X(lt_Tensor) X(masked_fill__Scalar) X(max) X(maximum) X(mean_dim) X(min) X(minimum)    \
  X(mm) X(mul_Scalar) X(mul_Tensor) X(mul__Scalar) X(mul__Tensor) X(native_batch_norm_backward) X(native_group_norm) \
  X(native_group_norm_backward) X(native_layer_norm) X(native_layer_norm_backward) X(ne_Scalar) X(ne_Tensor) X(neg)  \
  X(nll_loss_backward) X(nll_loss_forward) X(nonzero) X(pow_Tensor_Scalar) X(reciprocal) X(relu) X(relu_) X(rsqrt)   \
  X(sigmoid) X(sigmoid_backward) X(silu) X(sin) X(sort_stable) X(sqrt) X(sub_Scalar) X(sub_Tensor) X(sub__Scalar)    \
  X(sub__Tensor) X(sum_dim_IntList) X(tanh) X(tanh_backward) X(threshold_backward) X(topk) X(where_self) X(zero_)
// clang-format on

struct Recorders {
  torch::CppFunction (*below_autograd)();
  torch::CppFunction (*without_grad)();
};

const absl::flat_hash_map<std::string, Recorders>& AllRecorders() {
  static const auto* const recorders = new absl::flat_hash_map<std::string, Recorders>{
#define X(op)                                                                   \
  {std::string(at::_ops::op::name) + "." + at::_ops::op::overload_name,         \
   {[] { return torch::CppFunction(TORCH_FN(Unboxed<at::_ops::op>::Record)); }, \
    [] { return torch::CppFunction(TORCH_FN(Unboxed<at::_ops::op>::RecordWithoutGrad)); }}},
      TORCH_LAZY_UNBOXED_LIST(X)
#undef X
  };
  return *recorders;
}

}  // namespace

std::optional<torch::CppFunction> UnboxedRecorder(const c10::OperatorName& name) {
  auto recorders = AllRecorders().find(name.name + "." + name.overload_name);
  if (recorders == AllRecorders().end()) return std::nullopt;
  return recorders->second.below_autograd();
}

void RecordCopy(at::Tensor to, const at::Tensor& from, bool non_blocking) {
  Unboxed<at::_ops::copy_>::Record(to, from, non_blocking);
}

void RecordWithoutGrad(torch::Library& aten) {
  for (const auto& [name, recorders] : AllRecorders()) {
    const size_t dot = name.rfind('.');
    const c10::OperatorHandle op =
        c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), name.substr(dot + 1).c_str());
    const bool has_own = op.hasKernelForDispatchKey(c10::DispatchKey::AutogradPrivateUse1);
    if (has_own || !op.hasKernelForDispatchKey(c10::DispatchKey::Autograd)) continue;
    aten.impl(c10::toString(op.operator_name()).c_str(), recorders.without_grad());
  }
}

}  // namespace torch_lazy::device
