// SPDX-License-Identifier: Apache-2.0
#include "test/fuzz/cpp/lines.h"

#include <cctype>
#include <cstring>
#include <string_view>

#include <torch/csrc/autograd/autograd.h>

#include "absl/strings/str_join.h"
#include "torch_lazy/torch_lazy.h"

namespace torch_lazy::fuzz {
namespace {

using at::indexing::Ellipsis;
using at::indexing::None;
using at::indexing::Slice;

std::string Text(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.detach().cpu().to(at::kDouble).contiguous();
  return absl::StrJoin(numbers.const_data_ptr<double>(), numbers.const_data_ptr<double>() + numbers.numel(), " ");
}

// A line's text is its code.
#define LINE(...)                                                                                                     \
  {                                                                                                                   \
#__VA_ARGS__, [](Frame & frame) {                                                                                   \
      [[maybe_unused]] auto& [a, b, c, out, out2, note, number, extent, shape, dtype, device] = frame;                  \
      __VA_ARGS__;                                                                                                      \
    } \
  }

std::vector<Kind> MakeKinds() {
  return {
      {"factory",
       6,
       {
           LINE(out = at::arange(extent * 2, device).remainder(7).sub(3).to(dtype)),
           LINE(out = at::arange(12, device).remainder(5).sub(2).to(dtype).view({3, 4})),
           LINE(out = at::full(shape, number, at::dtype(dtype).device(device))),
           LINE(out = at::zeros(shape, at::dtype(dtype).device(device))),
           LINE(out = at::ones(shape, dtype).to(device)),
           LINE(out = at::tensor({1, -2, 3, 0, 5, -6}).view({2, 3}).clone().to(device).to(dtype)),
           LINE(out = at::eye(extent, at::dtype(dtype).device(device))),
       }},
      {"random",
       4,
       {
           LINE(out = at::randint(-4, 5, shape, device).to(dtype)),
           LINE(out = at::randperm(extent, device).to(dtype)),
           LINE(out = at::rand(shape, device).mul(8).floor()),
           LINE(out = at::dropout(a.to(at::kFloat), 0.5, true)),
           LINE(out = at::bernoulli(at::full(shape, 0.5, device))),
           LINE(at::manual_seed(extent)),
       }},
      {"pointwise",
       14,
       {
           LINE(out = a + b),
           LINE(out = a - b),
           LINE(out = a * b),
           LINE(out = a + number),
           LINE(out = number - a),
           LINE(out = a * number),
           LINE(out = -a),
           LINE(out = a.square()),
           LINE(out = a.pow(2)),
           LINE(out = at::add(a, b, 2)),
           LINE(out = a.lerp(b, 0.5)),
           LINE(out = at::addcmul(a, b, c, 2)),
           LINE(out = a / 4),
           LINE(out = a.clone()),
           LINE(out = a.to(at::kDouble)),
           LINE(out = at::empty_like(a).copy_(b)),
           LINE(out = at::zeros_like(a)),
       }},
      {"decision",
       10,
       {
           LINE(out = a.abs()),
           LINE(out = at::maximum(a, b)),
           LINE(out = a.clamp(-3, 5)),
           LINE(out = a.relu()),
           LINE(out = at::leaky_relu(a, 0.5)),
           LINE(out = at::where(a > b, a, c)),
           LINE(out = a > b),
           LINE(out = a == number),
           LINE(out = a.sign()),
           LINE(out = a.remainder(5)),
           LINE(out = a.floor_divide(3)),
           LINE(out = a.round()),
           LINE(out = a.logical_and(b)),
           LINE(out = a & b),
           LINE(out = a.to(dtype)),
           LINE(out = a.ne(b).type_as(b)),
           LINE(out = a.masked_fill(b > 0, number)),
       }},
      {"in place",
       16,
       {
           LINE(a.add_(b)),
           LINE(a.sub_(b, 2)),
           LINE(a.mul_(number)),
           LINE(a.mul_(b)),
           LINE(a.neg_()),
           LINE(a.zero_()),
           LINE(a.fill_(number)),
           LINE(a.copy_(b)),
           LINE(a.addcmul_(b, c, -1)),
           LINE(a.addmm_(b, c)),
           LINE(a.clamp_(-4, 4)),
           LINE(a.relu_()),
           LINE(a.masked_fill_(b > 0, number)),
           LINE(a.index({Slice(1)}).add_(b)),
           LINE(a.index({Ellipsis, Slice(None, None, 2)}).mul_(2)),
           LINE(a.index_put_(
               {0}, at::atleast_1d(b))),  // PyTorch fills with a number of the CPU, copies one of other devices
           LINE(a.index_put_({-1}, number)),
           LINE(a.index_put_({a > 1}, number)),
           LINE(a.index_put_({at::zeros({2}, at::dtype(at::kLong).device(device))}, b, true)),
           LINE(a += b[0]),
           LINE(a.select(-1, 0).sub_(1)),
           LINE(a.t().add_(b)),
           LINE(a.view(-1).slice(0, 0, std::nullopt, 2).fill_(number)),
           LINE(a.transpose(0, -1).copy_(b)),
           LINE(a.diagonal().fill_(number)),
           LINE(a.narrow(0, 0, 1).mul_(-1)),
           LINE(a.index_fill_(0, at::zeros({1}, at::dtype(at::kLong).device(device)), number)),
           LINE(a.index_add_(0, at::zeros({2}, at::dtype(at::kLong).device(device)), b)),
           LINE(a.scatter_add_(0, at::zeros_like(a, at::kLong), b)),
           LINE(at::add_out(c, a, b)),
           LINE(at::mul_out(c, a, a)),
           LINE(at::_foreach_mul_({a, b}, at::ArrayRef<at::Scalar>({2, 3}))),
           LINE(a.cumsum_(0)),
           LINE(a.tril_()),
           LINE(a.unsqueeze_(0)),
           LINE(a.squeeze_(0)),
           LINE(a.t_()),
           LINE(a.transpose_(0, -1)),
       }},
      {"view",
       12,
       {
           LINE(out = a.t()),
           LINE(out = a.transpose(0, -1)),
           LINE(out = a.view(-1)),
           LINE(out = a.reshape(-1)),
           LINE(out = a[0]),
           LINE(out = a.index({Slice(1)})),
           LINE(out = a.index({Ellipsis, Slice(None, None, 2)})),
           LINE(out = a.index({None, Ellipsis, 0})),
           LINE(out = a.unsqueeze(-1)),
           LINE(out = a.squeeze()),
           LINE(out = a.unsqueeze(0).expand({extent, -1, -1})),
           LINE(out = a.select(-1, 0)),
           LINE(out = a.narrow(0, 0, 1)),
           LINE(out = a.diagonal()),
           LINE(out = a.detach()),
           LINE(out = a.variable_data()),
           LINE(out = a.unfold(-1, 2, 1)),
           LINE(out = a.movedim(0, -1)),
           LINE(out = a.view_as(b)),
           LINE(out = a.expand_as(b)),
           LINE(out = a.as_strided({2, 2}, {1, 1})),
           LINE(out = a.contiguous()),
           LINE(const auto parts = a.chunk(2, -1); out = parts.at(0); out2 = parts.at(1)),
       }},
      {"sum",
       6,
       {
           LINE(out = a.sum()),
           LINE(out = a.sum(0)),
           LINE(out = a.sum(-1, true)),
           LINE(out = a.sum(at::IntArrayRef({0, -1}), false, at::kDouble)),
           LINE(out = a.cumsum(0)),
           LINE(out = at::mse_loss(a, b, at::Reduction::Sum)
                          .clone()),  // a copy: the storage of eager's has room for all terms
           LINE(out = a.matmul(b)),
           LINE(out = a.mm(a.t())),
           LINE(out = a.t().matmul(b)),
           LINE(out = at::linear(a, b)),
           LINE(out = at::linear(a, b, c)),
           LINE(out = at::addmm(a, b, c)),
           LINE(out = at::outer(a.flatten().slice(0, 0, 5), b.flatten().slice(0, 0, 4))),
       }},
      {"choice",
       5,
       {
           LINE(out = a.amax(-1)),
           LINE(out = a.max()),
           LINE(std::tie(out, out2) = a.max(-1)),
           LINE(std::tie(out, out2) = a.sort(true, -1)),
           LINE(out = a.argmax(-1)),
           LINE(out = (a > 0).any(-1)),
           LINE(out = a.count_nonzero()),
           LINE(out = a.clamp(-2, 2).prod(-1)),
           LINE(out = a.index({a > 0})),
           LINE(out = a.nonzero()),
           LINE(out = a.view(at::kInt)),
       }},
      {"move",
       7,
       {
           LINE(out = at::cat({a, b})),
           LINE(out = at::cat({a, a}, -1)),
           LINE(out = at::stack({a, b}, -1)),
           LINE(out = a.flip(0)),
           LINE(out = a.roll(1, -1)),
           LINE(out = a.repeat_interleave(2, 0)),
           LINE(out = at::constant_pad_nd(a, {1, 2})),
           LINE(out = a.tril()),
           LINE(out = a.index_select(0, at::zeros({3}, at::dtype(at::kLong).device(device)))),
           LINE(out = a.gather(0, at::zeros_like(a, at::kLong))),
           LINE(out = a.index({at::zeros({2}, at::dtype(at::kLong).device(device))})),
           LINE(out = at::embedding(a, at::arange(2, at::dtype(at::kLong).device(device)))),
       }},
      {"gradient",
       9,
       {
           LINE(a.requires_grad_()),
           LINE(out = a.detach().clone().requires_grad_()),
           LINE(out = a.detach().to(at::kDouble).requires_grad_()),
           LINE(a.sum().backward()),
           LINE(a.square().sum().backward()),
           LINE((a * b).sum().backward()),
           LINE(a.matmul(b).sum().backward()),
           LINE(out = torch::autograd::grad({(a * a).sum()}, {a})[0]),
           LINE(out = a.grad()),
           LINE(out = a.grad().clone()),
           LINE(a.mutable_grad() = at::Tensor()),
           LINE(a.mutable_grad().zero_()),
           LINE(at::NoGradGuard no_grad; a.sub_(a.grad())),
           LINE(at::NoGradGuard no_grad; a.add_(b)),
           LINE(a.register_hook([](const at::Tensor& grad) { return grad * 2; })),
           LINE(a.retain_grad()),
       }},
      // The host waits.
      {"wait",
       2,
       {
           LINE(note = std::to_string(a.sum().item().toDouble())),
           LINE(note = Text(a)),
           LINE(note = std::to_string((a > 0).any().item().toBool())),
           LINE(note = std::to_string(a.equal(b))),
           LINE(if (a.sum().item().toDouble() > 0) b.add_(1)),
           LINE(out = a.cpu().clone().to(device)),
           LINE(if (device.is_privateuseone()) Sync()),
       }},
      {"storage",
       2,
       {
           LINE(a.set_data(b)),
           LINE(if (a.dtype() == b.dtype()) a.set_(b)),  // others would read beyond the storage's end
           LINE(a.resize_(shape).zero_()),
           LINE(out = at::empty({0}, a.options()).set_(a.storage())),
           LINE(note = std::to_string(a.is_set_to(b))),
           LINE(note = std::to_string(a.storage().nbytes())),
           LINE(note = std::to_string(a.is_view() && a._base().is_same(b))),
           LINE(std::swap(a, b)),
           LINE(a = b),
       }},
      {"deletion", 3, {LINE(a = at::Tensor())}},
  };
}

}  // namespace

bool Line::Says(const char* name) const {
  const std::string_view all = text;
  const auto is_of_name = [&](size_t i) {
    return i < all.size() && (std::isalnum(static_cast<unsigned char>(all[i])) || all[i] == '_');
  };
  const size_t length = std::strlen(name);
  for (size_t at = all.find(name); at != all.npos; at = all.find(name, at + 1)) {
    if (!is_of_name(at - 1) && !is_of_name(at + length)) return true;
  }
  return false;
}

const std::vector<Kind>& Kinds() {
  static const auto* const kinds = new std::vector<Kind>(MakeKinds());
  return *kinds;
}

}  // namespace torch_lazy::fuzz
