// SPDX-License-Identifier: Apache-2.0
// The null device's kernels, which know sizes and nothing else.
#include <ATen/ExpandUtils.h>
#include <ATen/Operators.h>
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

#include "bench/null_device.h"

namespace bench {
namespace {

using at::OptionalIntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using c10::SymInt;
using c10::SymIntArrayRef;
using MaybeTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// Kernels by what they return.
template <typename Signature>
struct LikeFirst;
template <typename First, typename... Rest>
struct LikeFirst<Tensor(First, Rest...)> {
  static Tensor Call(First first, Rest...) { return Like(first); }
};
template <typename... Rest>
struct LikeFirst<std::vector<Tensor>(at::TensorList, Rest...)> {
  static std::vector<Tensor> Call(at::TensorList list, Rest...) {
    std::vector<Tensor> results;
    results.reserve(list.size());
    for (const Tensor& tensor : list) results.push_back(Like(tensor));
    return results;
  }
};

template <typename Signature>
struct Test;  // whose results are booleans
template <typename... Rest>
struct Test<Tensor(const Tensor&, Rest...)> {
  static Tensor Call(const Tensor& first, Rest...) { return NewTensor(first.sizes(), at::kBool); }
};

template <typename Signature>
struct InPlace;
template <typename... Rest>
struct InPlace<Tensor&(Tensor&, Rest...)> {
  static Tensor& Call(Tensor& self, Rest...) { return self; }
};
template <typename... Rest>
struct InPlace<void(at::TensorList, Rest...)> {
  static void Call(at::TensorList, Rest...) {}
};

template <typename Signature>
struct Broadcast;
template <typename... Rest>
struct Broadcast<Tensor(const Tensor&, const Tensor&, Rest...)> {
  static Tensor Call(const Tensor& a, const Tensor& b, Rest...) {
    if (a.sizes() == b.sizes() || b.dim() == 0) return Like(a);
    return NewTensor(at::infer_size_dimvector(a.sizes(), b.sizes()), a.scalar_type());
  }
};

template <typename Signature>
struct Compare;
template <typename... Rest>
struct Compare<Tensor(const Tensor&, const Tensor&, Rest...)> {
  static Tensor Call(const Tensor& a, const Tensor& b, Rest...) {
    return NewTensor(at::infer_size_dimvector(a.sizes(), b.sizes()), at::kBool);
  }
};

// Of a reduction over `dims`, all of them if there are none.
Tensor Reduced(const Tensor& self, OptionalIntArrayRef dims, bool keep, ScalarType type) {
  at::DimVector sizes;
  const bool all = !dims.has_value() || dims->empty();
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool reduced = all;
    for (size_t k = 0; !all && k < dims->size(); ++k)
      reduced = reduced || at::maybe_wrap_dim((*dims)[k], self.dim()) == d;
    if (!reduced)
      sizes.push_back(self.size(d));
    else if (keep)
      sizes.push_back(1);
  }
  return NewTensor(sizes, type);
}
Tensor ReduceDims(const Tensor& self, OptionalIntArrayRef dims, bool keep, std::optional<ScalarType> type) {
  return Reduced(self, dims, keep, type.value_or(self.scalar_type()));
}
Tensor ReduceAll(const Tensor& self, std::optional<ScalarType> type) {
  return NewTensor({}, type.value_or(self.scalar_type()));
}
Tensor Norm(const Tensor& self, const Scalar&, OptionalIntArrayRef dims, bool keep, std::optional<ScalarType>) {
  return Reduced(self, dims, keep, self.scalar_type());
}
Tensor NormDims(const Tensor& self, const std::optional<Scalar>&, at::IntArrayRef dims, bool keep) {
  return Reduced(self, dims, keep, self.scalar_type());
}
Tensor Deviation(const Tensor& self, OptionalIntArrayRef dims, const std::optional<Scalar>&, bool keep) {
  return Reduced(self, dims, keep, self.scalar_type());
}
Tensor ArgMax(const Tensor& self, std::optional<int64_t> dim, bool keep) {
  return Reduced(self, dim ? OptionalIntArrayRef(*dim) : OptionalIntArrayRef(), keep, at::kLong);
}
Tensor AnyDim(const Tensor& self, int64_t dim, bool keep) {
  return Reduced(self, OptionalIntArrayRef(dim), keep, at::kBool);
}
Tensor Any(const Tensor&) { return NewTensor({}, at::kBool); }
Tensor Max(const Tensor& self) { return NewTensor({}, self.scalar_type()); }
Tensor NormAll(const Tensor& self, const Scalar&) { return NewTensor({}, self.scalar_type()); }
std::vector<Tensor> ForeachNorm(at::TensorList list, const Scalar&, std::optional<ScalarType>) {
  std::vector<Tensor> norms;
  for (const Tensor& tensor : list) norms.push_back(NewTensor({}, tensor.scalar_type()));
  return norms;
}

Tensor Cat(const at::ITensorListRef& tensors, int64_t dim) {
  at::DimVector sizes;
  ScalarType type = at::kFloat;
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() == 1 && tensor.size(0) == 0) continue;  // of whatever dimensions
    const size_t place = at::maybe_wrap_dim(dim, tensor.dim());
    const int64_t before = sizes.empty() ? 0 : sizes[place];
    sizes = tensor.sizes();
    sizes[place] += before;
    type = tensor.scalar_type();
  }
  return NewTensor(sizes, type);
}

Tensor Mm(const Tensor& a, const Tensor& b) { return NewTensor({a.size(0), b.size(1)}, a.scalar_type()); }
Tensor Addmm(const Tensor&, const Tensor& a, const Tensor& b, const Scalar&, const Scalar&) { return Mm(a, b); }
Tensor Bmm(const Tensor& a, const Tensor& b) { return NewTensor({a.size(0), a.size(1), b.size(2)}, a.scalar_type()); }
Tensor Linear(const Tensor& x, const Tensor& weight, const MaybeTensor&) {
  at::DimVector sizes(x.sizes());
  sizes.back() = weight.size(0);
  return NewTensor(sizes, x.scalar_type());
}
Three LinearBackward(const Tensor& x, const Tensor& gradient, const Tensor& weight, std::array<bool, 3> wanted) {
  return {wanted[0] ? Like(x) : Tensor(), wanted[1] ? Like(weight) : Tensor(),
          wanted[2] ? NewTensor({gradient.size(-1)}, x.scalar_type()) : Tensor()};
}

Tensor Convolution(const Tensor& x, const Tensor& weight, const MaybeTensor&, SymIntArrayRef stride,
                   SymIntArrayRef padding, SymIntArrayRef dilation, bool, SymIntArrayRef, SymInt) {
  at::DimVector sizes = {x.size(0), weight.size(0)};
  for (int64_t d = 2; d < x.dim(); ++d) {
    const auto at = [&](SymIntArrayRef values) { return values[values.size() == 1 ? 0 : d - 2].expect_int(); };
    sizes.push_back((x.size(d) + 2 * at(padding) - at(dilation) * (weight.size(d) - 1) - 1) / at(stride) + 1);
  }
  return NewTensor(sizes, x.scalar_type());
}
Three ConvolutionBackward(const Tensor&, const Tensor& x, const Tensor& weight, at::OptionalSymIntArrayRef,
                          SymIntArrayRef, SymIntArrayRef, SymIntArrayRef, bool, SymIntArrayRef, SymInt,
                          std::array<bool, 3> wanted) {
  return {wanted[0] ? Like(x) : Tensor(), wanted[1] ? Like(weight) : Tensor(),
          wanted[2] ? NewTensor({weight.size(0)}, x.scalar_type()) : Tensor()};
}

Two MaxPool(const Tensor& x, at::IntArrayRef size, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef,
            bool) {
  at::DimVector sizes(x.sizes());
  for (size_t d = 0; d < 2; ++d) {
    const auto at = [&](at::IntArrayRef values) { return values[values.size() == 1 ? 0 : d]; };
    int64_t& extent = sizes[sizes.size() - 2 + d];
    extent = (extent + 2 * at(padding) - at(size)) / at(stride) + 1;
  }
  return {NewTensor(sizes, x.scalar_type()), NewTensor(sizes, at::kLong)};
}
Tensor MaxPoolBackward(const Tensor&, const Tensor& x, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                       at::IntArrayRef, bool, const Tensor&) {
  return Like(x);
}

Three BatchNorm(const Tensor& x, const MaybeTensor&, const MaybeTensor&, Tensor&, Tensor&, bool, double, double) {
  return {Like(x), NewTensor({x.size(1)}, x.scalar_type()), NewTensor({x.size(1)}, x.scalar_type())};
}
Three NativeBatchNorm(const Tensor& x, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&,
                      bool, double, double) {
  return {Like(x), NewTensor({x.size(1)}, x.scalar_type()), NewTensor({x.size(1)}, x.scalar_type())};
}
Three BatchNormBackward(const Tensor&, const Tensor& x, const MaybeTensor& weight, const MaybeTensor&,
                        const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, bool, double,
                        std::array<bool, 3> wanted) {
  return {wanted[0] ? Like(x) : Tensor(), wanted[1] ? Like(*weight) : Tensor(), wanted[2] ? Like(*weight) : Tensor()};
}
Three LayerNorm(const Tensor& x, SymIntArrayRef shape, const MaybeTensor&, const MaybeTensor&, double) {
  at::DimVector sizes(x.sizes());
  for (size_t k = sizes.size() - shape.size(); k < sizes.size(); ++k) sizes[k] = 1;
  return {Like(x), NewTensor(sizes, x.scalar_type()), NewTensor(sizes, x.scalar_type())};
}
Three LayerNormBackward(const Tensor&, const Tensor& x, SymIntArrayRef, const Tensor&, const Tensor&,
                        const MaybeTensor& weight, const MaybeTensor& bias, std::array<bool, 3> wanted) {
  return {wanted[0] ? Like(x) : Tensor(), wanted[1] ? Like(*weight) : Tensor(), wanted[2] ? Like(*bias) : Tensor()};
}

Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return NewTensor(at::infer_size_dimvector(at::infer_size_dimvector(a.sizes(), b.sizes()), condition.sizes()),
                   a.scalar_type());
}
Tensor& WhereOut(const Tensor&, const Tensor&, const Tensor&, Tensor& out) { return out; }
Tensor CumulativeSum(const Tensor& self, int64_t, std::optional<ScalarType> type) {
  return NewTensor(self.sizes(), type.value_or(self.scalar_type() == at::kBool ? at::kLong : self.scalar_type()));
}
// By integers, of dimensions that follow each other.
Tensor Index(const Tensor& self, const c10::List<MaybeTensor>& indices) {
  at::DimVector sizes, picked;
  size_t place = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const MaybeTensor index = d < static_cast<int64_t>(indices.size()) ? indices.get(d) : MaybeTensor();
    if (index && picked.empty()) place = sizes.size();
    if (index)
      picked = at::infer_size_dimvector(picked, index->sizes());
    else
      sizes.push_back(self.size(d));
  }
  sizes.insert(sizes.begin() + place, picked.begin(), picked.end());
  return NewTensor(sizes, self.scalar_type());
}
Tensor Gather(const Tensor& self, int64_t, const Tensor& index, bool) {
  return NewTensor(index.sizes(), self.scalar_type());
}
Two Dropout(const Tensor& x, double, std::optional<bool>) { return {Like(x), NewTensor(x.sizes(), at::kBool)}; }

Two NllLoss(const Tensor& self, const Tensor&, const MaybeTensor&, int64_t, SymInt) {
  return {NewTensor({}, self.scalar_type()), NewTensor({}, self.scalar_type())};
}
Tensor NllLossBackward(const Tensor&, const Tensor& self, const Tensor&, const MaybeTensor&, int64_t, SymInt,
                       const Tensor&) {
  return Like(self);
}
Tensor SoftmaxBackward(const Tensor& gradient, const Tensor&, int64_t, ScalarType) { return Like(gradient); }
Tensor MseLoss(const Tensor& self, const Tensor&, int64_t) { return NewTensor({}, self.scalar_type()); }
Tensor MseLossBackward(const Tensor&, const Tensor& self, const Tensor&, int64_t) { return Like(self); }
Tensor Embedding(const Tensor& weight, const Tensor& indices, SymInt, bool, bool) {
  at::DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  return NewTensor(sizes, weight.scalar_type());
}
Tensor EmbeddingBackward(const Tensor& gradient, const Tensor&, SymInt rows, SymInt, bool) {
  return NewTensor({rows.expect_int(), gradient.size(-1)}, gradient.scalar_type());
}

Two Attention(const Tensor& q, const Tensor&, const Tensor&, double, bool, const MaybeTensor&, std::optional<double>) {
  return {Like(q), NewTensor({q.size(0), q.size(1), q.size(2)}, at::kFloat)};
}
Three AttentionBackward(const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&, const Tensor&,
                        double, bool, const MaybeTensor&, std::optional<double>) {
  return {Like(q), Like(k), Like(v)};
}
Tensor ScaledDotProductAttention(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask,
                                 double dropout, bool causal, std::optional<double> scale, bool grouped) {
  if (mask && mask->requires_grad()) {
    return std::get<0>(at::_ops::_scaled_dot_product_attention_math::call(q, k, v, mask, dropout, causal, std::nullopt,
                                                                          scale, grouped));
  }
  return std::get<0>(
      at::_ops::_scaled_dot_product_flash_attention_for_cpu::call(q, k, v, dropout, causal, mask, scale));
}

#define LIKE_FIRST(name, op) m.impl(name, LikeFirst<at::_ops::op::schema>::Call)
#define TEST(name, op) m.impl(name, Test<at::_ops::op::schema>::Call)
#define COMPARE(name, op) m.impl(name, Compare<at::_ops::op::schema>::Call)
#define IN_PLACE(name, op) m.impl(name, InPlace<at::_ops::op::schema>::Call)
#define BROADCAST(name, op) m.impl(name, Broadcast<at::_ops::op::schema>::Call)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  LIKE_FIRST("zeros_like", zeros_like);
  LIKE_FIRST("native_dropout_backward", native_dropout_backward);
  LIKE_FIRST("div.Scalar", div_Scalar);
  LIKE_FIRST("mul.Scalar", mul_Scalar);
  LIKE_FIRST("clamp", clamp);
  LIKE_FIRST("gelu", gelu);
  LIKE_FIRST("neg", neg);
  LIKE_FIRST("masked_fill.Scalar", masked_fill_Scalar);
  LIKE_FIRST("scatter_add", scatter_add);
  LIKE_FIRST("reciprocal", reciprocal);
  LIKE_FIRST("relu", relu);
  LIKE_FIRST("sigmoid", sigmoid);
  LIKE_FIRST("sqrt", sqrt);
  LIKE_FIRST("tanh", tanh);
  LIKE_FIRST("rsub.Scalar", rsub_Scalar);
  LIKE_FIRST("gelu_backward", gelu_backward);
  LIKE_FIRST("leaky_relu", leaky_relu);
  LIKE_FIRST("leaky_relu_backward", leaky_relu_backward);
  LIKE_FIRST("sigmoid_backward", sigmoid_backward);
  LIKE_FIRST("tanh_backward", tanh_backward);
  LIKE_FIRST("threshold_backward", threshold_backward);
  LIKE_FIRST("_log_softmax", _log_softmax);
  LIKE_FIRST("_softmax", _softmax);
  LIKE_FIRST("_foreach_sqrt", _foreach_sqrt);
  LIKE_FIRST("bitwise_not", bitwise_not);
  LIKE_FIRST("abs", abs);
  LIKE_FIRST("exp", exp);
  LIKE_FIRST("log", log);
  LIKE_FIRST("cos", cos);
  LIKE_FIRST("sin", sin);
  LIKE_FIRST("silu", silu);
  LIKE_FIRST("rsqrt", rsqrt);
  LIKE_FIRST("pow.Tensor_Scalar", pow_Tensor_Scalar);
  TEST("isin.Tensor_Tensor", isin_Tensor_Tensor);
  TEST("isnan", isnan);
  TEST("isneginf", isneginf);
  TEST("eq.Scalar", eq_Scalar);
  TEST("ne.Scalar", ne_Scalar);
  TEST("lt.Scalar", lt_Scalar);
  TEST("ge.Scalar", ge_Scalar);
  TEST("gt.Scalar", gt_Scalar);
  TEST("le.Scalar", le_Scalar);
  COMPARE("eq.Tensor", eq_Tensor);
  COMPARE("ne.Tensor", ne_Tensor);
  COMPARE("lt.Tensor", lt_Tensor);
  COMPARE("le.Tensor", le_Tensor);
  COMPARE("gt.Tensor", gt_Tensor);
  COMPARE("ge.Tensor", ge_Tensor);
  BROADCAST("bitwise_and.Tensor", bitwise_and_Tensor);
  BROADCAST("bitwise_or.Tensor", bitwise_or_Tensor);
  COMPARE("logical_and", logical_and);
  BROADCAST("add.Tensor", add_Tensor);
  BROADCAST("sub.Tensor", sub_Tensor);
  BROADCAST("mul.Tensor", mul_Tensor);
  BROADCAST("maximum", maximum);
  BROADCAST("minimum", minimum);
  BROADCAST("div.Tensor", div_Tensor);
  IN_PLACE("add_.Tensor", add__Tensor);
  IN_PLACE("sub_.Tensor", sub__Tensor);
  IN_PLACE("mul_.Tensor", mul__Tensor);
  IN_PLACE("div_.Tensor", div__Tensor);
  IN_PLACE("mul_.Scalar", mul__Scalar);
  IN_PLACE("addcmul_", addcmul_);
  IN_PLACE("addcdiv_", addcdiv_);
  IN_PLACE("fill_.Scalar", fill__Scalar);
  IN_PLACE("masked_fill_.Scalar", masked_fill__Scalar);
  IN_PLACE("zero_", zero_);
  IN_PLACE("normal_", normal_);
  IN_PLACE("uniform_", uniform_);
  IN_PLACE("relu_", relu_);
  IN_PLACE("scatter_add_", scatter_add_);
  IN_PLACE("index_copy_", index_copy_);
  IN_PLACE("logical_and_", logical_and_);
  IN_PLACE("silu_", silu_);
  IN_PLACE("_foreach_add_.List", _foreach_add__List);
  IN_PLACE("_foreach_add_.Scalar", _foreach_add__Scalar);
  IN_PLACE("_foreach_addcdiv_.ScalarList", _foreach_addcdiv__ScalarList);
  IN_PLACE("_foreach_addcmul_.Scalar", _foreach_addcmul__Scalar);
  IN_PLACE("_foreach_div_.ScalarList", _foreach_div__ScalarList);
  IN_PLACE("_foreach_lerp_.Scalar", _foreach_lerp__Scalar);
  IN_PLACE("_foreach_mul_.Scalar", _foreach_mul__Scalar);
  IN_PLACE("_foreach_mul_.Tensor", _foreach_mul__Tensor);
  m.impl("_foreach_norm.Scalar", ForeachNorm);
  m.impl("sum", ReduceAll);
  m.impl("mean", ReduceAll);
  m.impl("sum.dim_IntList", ReduceDims);
  m.impl("mean.dim", ReduceDims);
  m.impl("linalg_vector_norm", Norm);
  m.impl("norm.Scalar", NormAll);
  m.impl("norm.ScalarOpt_dim", NormDims);
  m.impl("std.correction", Deviation);
  m.impl("argmax", ArgMax);
  m.impl("any", Any);
  m.impl("all", Any);
  m.impl("all.dim", AnyDim);
  m.impl("any.dim", AnyDim);
  m.impl("max", Max);
  m.impl("where.self", Where);
  m.impl("where.self_out", WhereOut);
  m.impl("cumsum", CumulativeSum);
  m.impl("bmm", Bmm);
  m.impl("cat", Cat);
  m.impl("mm", Mm);
  m.impl("addmm", Addmm);
  m.impl("linear", Linear);
  m.impl("linear_backward", LinearBackward);
  m.impl("convolution", Convolution);
  m.impl("convolution_backward", ConvolutionBackward);
  m.impl("max_pool2d_with_indices", MaxPool);
  m.impl("max_pool2d_with_indices_backward", MaxPoolBackward);
  m.impl("_native_batch_norm_legit", BatchNorm);
  m.impl("native_batch_norm", NativeBatchNorm);
  m.impl("native_batch_norm_backward", BatchNormBackward);
  m.impl("native_layer_norm", LayerNorm);
  m.impl("native_layer_norm_backward", LayerNormBackward);
  m.impl("index.Tensor", Index);
  m.impl("gather", Gather);
  m.impl("native_dropout", Dropout);
  m.impl("nll_loss_forward", NllLoss);
  m.impl("nll_loss_backward", NllLossBackward);
  m.impl("_log_softmax_backward_data", SoftmaxBackward);
  m.impl("_softmax_backward_data", SoftmaxBackward);
  m.impl("mse_loss", MseLoss);
  m.impl("mse_loss_backward", MseLossBackward);
  m.impl("embedding", Embedding);
  m.impl("embedding_dense_backward", EmbeddingBackward);
  m.impl("_scaled_dot_product_flash_attention_for_cpu", Attention);
  m.impl("_scaled_dot_product_flash_attention_for_cpu_backward", AttentionBackward);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("scaled_dot_product_attention", ScaledDotProductAttention); }

}  // namespace
}  // namespace bench
