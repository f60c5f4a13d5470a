# SPDX-License-Identifier: Apache-2.0
"""Rules of shape (device/shapes): a size that was never seen is recorded at once, with eager's geometry and values.

A case is a call for sizes b and t. It runs with one pair, which proves the rule; with another pair, its operator must not run
at once, and what it returns must lie as eager's does.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch
import torch_lazy
from torch.utils._pytree import tree_flatten

aten = torch.ops.aten
EAGER = os.environ.get("LAZY_TEST_EAGER", "cpu")
SOURCES = pathlib.Path(__file__).parents[2] / "device" / "rows"


class Make:
    """Tensors of a device, the same for each."""

    def __init__(self, device, b, t):
        self.device, self.b, self.t = device, b, t
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, *sizes):
        return torch.randn(sizes, generator=self.generator).to(self.device)

    def below(self, high, *sizes):
        return torch.randint(high, sizes, generator=self.generator).to(self.device)

    def rows(self):
        return self(self.b, self.t, 6)

    def image(self, channels=4):
        return self(self.b, channels, 2 * self.t, 8)

    def heads(self):
        return self(self.b, self.t, 2, 4).transpose(1, 2)


def attention_backward(m):
    q, k, v = m.heads(), m.heads(), m.heads()
    output, logsumexp = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
    return aten._scaled_dot_product_flash_attention_for_cpu_backward(m.heads(), q, k, v, output, logsumexp, 0.0, False)


def layer_norm_backward(m):
    x, w, c = m.rows(), m(6), m(6)
    _, mean, rstd = aten.native_layer_norm(x, [6], w, c, 1e-5)
    return aten.native_layer_norm_backward(m.rows(), x, [6], mean, rstd, w, c, [True, True, True])


def group_norm_backward(m):
    x, w, c = m.image(), m(4), m(4)
    _, mean, rstd = aten.native_group_norm(x, w, c, m.b, 4, 16 * m.t, 2, 1e-5)
    return aten.native_group_norm_backward(m.image(), x, mean, rstd, w, m.b, 4, 16 * m.t, 2, [True, True, True])


def batch_norm(m, x):
    return aten._native_batch_norm_legit(x, m(4), m(4), m(4), m(4).abs(), True, 0.1, 1e-5)


def batch_norm_backward(m):
    x, w = m.image(), m(4)
    mean, var = m(4), m(4).abs()
    _, save_mean, save_rstd = aten._native_batch_norm_legit(x, w, m(4), mean, var, True, 0.1, 1e-5)
    return aten.native_batch_norm_backward(m.image(), x, w, mean, var, save_mean, save_rstd, True, 1e-5, [True] * 3)


def convolution(m, x, transposed=False):
    return aten.convolution(x, m(4, 4, 3, 3), m(4), [2, 1], [1, 1], [1, 1], transposed, [0, 0], 1)


def convolution_backward(m):
    grad = m(m.b, 4, m.t, 8)
    return aten.convolution_backward(grad, m.image(), m(4, 4, 3, 3), [4], [2, 1], [1, 1], [1, 1], False, [0, 0], 1, [True] * 3)


def max_pool_backward(m):
    x = m.image()
    output, indices = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    return aten.max_pool2d_with_indices_backward(output, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices)


def nll_backward(m):
    x, target = m(m.b, 5), m.below(5, m.b)
    return aten.nll_loss_backward(m().abs(), x, target, None, 1, -100, m().fill_(float(m.b)))


def lstm_backward(m):
    state = aten._thnn_fused_lstm_cell(m(m.b, 12), m(m.b, 12), m(m.b, 3), m(12), m(12))
    return aten._thnn_fused_lstm_cell_backward_impl(m(m.b, 3), m(m.b, 3), m(m.b, 3), state[1], state[2], True)


def gru_backward(m):
    _, workspace = aten._thnn_fused_gru_cell(m(m.b, 9), m(m.b, 9), m(m.b, 3), m(9), m(9))
    return aten._thnn_fused_gru_cell_backward(m(m.b, 3), workspace, True)


def put(m):
    """Indices in the first dimensions, in the last one, and in two that are apart."""
    x, index = m.rows(), torch.arange(m.t).to(m.device)
    aten._index_put_impl_(x, [None, index], m(m.b, m.t, 6), True)
    aten._index_put_impl_(x, [index % m.b, index], m(m.t, 1), False)
    return aten._index_put_impl_(x, [index % m.b, None, index % 6], m(m.t, m.t), True)


CASES = {
    "aten::copy_": lambda m: m.rows().copy_(m(m.t, 6)),
    "aten::fill_.Scalar": lambda m: m.rows().fill_(2),
    "aten::fill_.Tensor": lambda m: m.rows().fill_(m()),
    "aten::masked_fill.Scalar": lambda m: m.rows().mT.masked_fill(m(6, m.t) > 0, 2),
    "aten::masked_fill.Tensor": lambda m: m(m.t, 1).masked_fill(m.rows() > 0, m()),
    "aten::masked_fill_.Scalar": lambda m: m.rows().masked_fill_(m.rows() > 0, 2),
    "aten::masked_fill_.Tensor": lambda m: m.rows().masked_fill_(m.rows() > 0, m()),
    "aten::scatter.src": lambda m: m.rows().scatter(1, m.below(m.t, m.b, 1, 6), m.rows()),  # equal indices: in no order
    "aten::scatter.value": lambda m: m.rows().scatter(1, m.below(m.t, m.b, m.t, 6), 2.0),
    "aten::scatter_.src": lambda m: m.rows().scatter_(1, m.below(m.t, m.b, 1, 6), m.rows()),
    "aten::scatter_.value": lambda m: m.rows().scatter_(1, m.below(m.t, m.b, m.t, 6), 2.0),
    "aten::scatter_add": lambda m: m.rows().scatter_add(1, m.below(m.t, m.b, m.t, 6), m.rows()),
    "aten::scatter_add_": lambda m: m.rows().scatter_add_(1, m.below(m.t, m.b, m.t, 6), m.rows()),
    "aten::index_add_": lambda m: m.rows().index_add_(1, torch.arange(m.t).flip(0).to(m.device), m.rows(), alpha=2),
    "aten::index_copy_": lambda m: m.rows().index_copy_(0, torch.arange(m.b).flip(0).to(m.device), m.rows()),
    "aten::_index_put_impl_": put,
    "aten::zero_": lambda m: m.rows().zero_(),
    "aten::_scaled_dot_product_flash_attention_for_cpu": lambda m: aten._scaled_dot_product_flash_attention_for_cpu(
        m.heads(), m.heads(), m.heads()
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
    "aten::addmm": lambda m: torch.addmm(m(m.t), m(m.b, 6), m(6, m.t)),
    "aten::baddbmm": lambda m: torch.baddbmm(m(1, 5), m.rows(), m(m.b, 6, 5)),
    "aten::bmm": lambda m: m.rows().bmm(m.rows().mT),
    "aten::dot": lambda m: m(m.t).dot(m(m.t)),
    "aten::linear": lambda m: torch.nn.functional.linear(m.rows(), m(5, 6), m(5)),
    "aten::linear_backward": lambda m: (
        torch.autograd.grad(
            torch.nn.functional.linear(x := m.rows().requires_grad_(), w := m(5, 6).requires_grad_(), c := m(5).requires_grad_()).sum(),
            (x, w, c),
        )
    ),
    "aten::mm": lambda m: m(m.b, 6).mm(m(6, m.t)),
    "aten::mv": lambda m: m(m.b, m.t).mv(m(m.t)),
    "aten::_log_softmax": lambda m: m.rows().log_softmax(1),
    "aten::_log_softmax_backward_data": lambda m: aten._log_softmax_backward_data(m.rows(), m.rows(), 1, torch.float32),
    "aten::_softmax": lambda m: m.rows().softmax(-1),
    "aten::_softmax_backward_data": lambda m: aten._softmax_backward_data(m.rows(), m.rows(), 1, torch.float32),
    "aten::all": lambda m: (m.rows() > 0).all(),
    "aten::all.dim": lambda m: (m.rows() > 0).all(1),
    "aten::amax": lambda m: m.rows().amax((0, 2)),
    "aten::amin": lambda m: m.rows().amin(-1, keepdim=True),
    "aten::any": lambda m: (m.rows() > 0).any(),
    "aten::any.dim": lambda m: (m.rows() > 0).any(1, keepdim=True),
    "aten::argmax": lambda m: m.rows().argmax(1),
    "aten::argmin": lambda m: m.rows().argmin(),
    "aten::cumprod": lambda m: m.rows().cumprod(1),
    "aten::cumsum": lambda m: m.below(5, m.b, m.t).cumsum(-1),
    "aten::kthvalue": lambda m: m.rows().kthvalue(2, 1),
    "aten::linalg_vector_norm": lambda m: torch.linalg.vector_norm(m.rows(), 2, -1),
    "aten::logsumexp": lambda m: m.rows().logsumexp((1, 2)),
    "aten::max": lambda m: m.rows().max(),
    "aten::max.dim": lambda m: m.rows().max(1),
    "aten::mean": lambda m: m.rows().mean(),
    "aten::mean.dim": lambda m: m.rows().mean((0, -1), keepdim=True),
    "aten::median": lambda m: m.rows().median(),
    "aten::median.dim": lambda m: m.rows().median(1),
    "aten::min": lambda m: m.rows().min(),
    "aten::min.dim": lambda m: m.rows().min(-1),
    "aten::nanmedian.dim": lambda m: m.rows().nanmedian(1),
    "aten::nansum": lambda m: m.rows().nansum(1),
    "aten::norm.ScalarOpt_dim": lambda m: aten.norm.ScalarOpt_dim(m.rows(), 2, [1]),
    "aten::prod": lambda m: m.rows().prod(),
    "aten::prod.dim_int": lambda m: m.rows().prod(1),
    "aten::std.correction": lambda m: m.rows().std(1),
    "aten::std_mean.correction": lambda m: torch.std_mean(m.rows(), 1),
    "aten::sum": lambda m: m.rows().sum(),
    "aten::sum.dim_IntList": lambda m: m.below(5, m.b, m.t).sum(-1),
    "aten::var.correction": lambda m: m.rows().var((0, 1)),
    "aten::var_mean.correction": lambda m: torch.var_mean(m.rows(), 1),
    "aten::_native_batch_norm_legit": lambda m: batch_norm(m, m.image()),
    "aten::embedding": lambda m: aten.embedding(m(7, 6), m.below(7, m.b, m.t)),
    "aten::embedding_dense_backward": lambda m: aten.embedding_dense_backward(m.rows(), m.below(7, m.b, m.t), 7, -1, False),
    "aten::hardtanh": lambda m: torch.nn.functional.hardtanh(m.rows()),
    "aten::huber_loss": lambda m: torch.nn.functional.huber_loss(m.rows(), m.rows()),
    "aten::huber_loss_backward": lambda m: aten.huber_loss_backward(m(), m.rows(), m.rows(), 1, 1.0),
    "aten::log_sigmoid_forward": lambda m: torch.nn.functional.logsigmoid(m.rows()),
    "aten::mse_loss": lambda m: torch.nn.functional.mse_loss(m.rows(), m.rows()),
    "aten::mse_loss_backward": lambda m: aten.mse_loss_backward(m(), m.rows(), m.rows(), 1),
    "aten::native_batch_norm_backward": batch_norm_backward,
    "aten::native_group_norm": lambda m: aten.native_group_norm(m.image(), m(4), m(4), m.b, 4, 16 * m.t, 2, 1e-5),
    "aten::native_group_norm_backward": group_norm_backward,
    "aten::native_layer_norm": lambda m: aten.native_layer_norm(m.rows(), [6], m(6), m(6), 1e-5),
    "aten::native_layer_norm_backward": layer_norm_backward,
    "aten::nll_loss_backward": nll_backward,
    "aten::nll_loss_forward": lambda m: torch.nn.functional.nll_loss(m(m.b, 5), m.below(5, m.b)),
    "aten::smooth_l1_loss": lambda m: torch.nn.functional.smooth_l1_loss(m.rows(), m.rows(), reduction="none"),
    "aten::smooth_l1_loss_backward": lambda m: aten.smooth_l1_loss_backward(m(), m.rows(), m.rows(), 1, 1.0),
    "aten::_adaptive_avg_pool2d": lambda m: aten._adaptive_avg_pool2d(m.image(), [2, 3]),
    "aten::_adaptive_avg_pool2d_backward": lambda m: aten._adaptive_avg_pool2d_backward(m(m.b, 4, 2, 3), m.image()),
    "aten::avg_pool2d": lambda m: torch.nn.functional.avg_pool2d(m.image(), 3, 2, 1, ceil_mode=True),
    "aten::avg_pool2d_backward": lambda m: aten.avg_pool2d_backward(
        m(m.b, 4, m.t, 4), m.image(), [2, 2], [2, 2], [0, 0], False, True, None
    ),
    "aten::constant_pad_nd": lambda m: torch.nn.functional.pad(m.rows(), (1, 2, 0, 1)),
    "aten::convolution": lambda m: convolution(m, m.image()),
    "aten::convolution_backward": convolution_backward,
    "aten::max_pool2d_with_indices": lambda m: aten.max_pool2d_with_indices(m.image(), [3, 2], [2, 2], [1, 0]),
    "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::upsample_bilinear2d": lambda m: torch.nn.functional.interpolate(m.image(), scale_factor=2, mode="bilinear"),
    "aten::upsample_bilinear2d_backward": lambda m: aten.upsample_bilinear2d_backward(
        m(m.b, 4, 4 * m.t, 16), [4 * m.t, 16], [m.b, 4, 2 * m.t, 8], False
    ),
    "aten::upsample_nearest2d": lambda m: torch.nn.functional.interpolate(m.image(), scale_factor=2),
    "aten::upsample_nearest2d_backward": lambda m: aten.upsample_nearest2d_backward(
        m(m.b, 4, 4 * m.t, 16), [4 * m.t, 16], [m.b, 4, 2 * m.t, 8]
    ),
    "aten::bucketize.Tensor": lambda m: torch.bucketize(m.rows(), m(5).sort().values),
    "aten::cat": lambda m: torch.cat([m.rows(), m.rows(), m(m.b, 1, 6)], 1),
    "aten::flip": lambda m: m.rows().flip(1),
    "aten::gather": lambda m: m.rows().gather(1, m.below(m.t, m.b, 2, 6)),
    "aten::index.Tensor": lambda m: m.rows()[m.below(m.b, m.b), m.below(m.t, m.b)],
    "aten::index_select": lambda m: m.rows().index_select(1, m.below(m.t, m.t)),
    "aten::roll": lambda m: m.rows().roll(1, 0),
    "aten::select_backward": lambda m: aten.select_backward(m(m.b, 6), [m.b, m.t, 6], 1, 0),
    "aten::slice_backward": lambda m: aten.slice_backward(m(m.b, 2, 6), [m.b, m.t, 6], 1, 0, 2, 1),
    "aten::sort.stable": lambda m: m.rows().sort(1),
    "aten::topk": lambda m: m.rows().topk(2, 1),
    "aten::tril": lambda m: m.rows().tril(),
    "aten::triu": lambda m: m.rows().triu(1),
    "aten::where.self": lambda m: torch.where(m.rows() > 0, m.rows(), m(6)),
    "aten::_thnn_fused_gru_cell": lambda m: aten._thnn_fused_gru_cell(m(m.b, 9), m(m.b, 9), m(m.b, 3), m(9), m(9)),
    "aten::_thnn_fused_gru_cell_backward": gru_backward,
    "aten::_thnn_fused_lstm_cell": lambda m: aten._thnn_fused_lstm_cell(m(m.b, 12), m(m.b, 12), m(m.b, 3), m(12), m(12)),
    "aten::_thnn_fused_lstm_cell_backward_impl": lstm_backward,
    "aten::arange.start_out": lambda m: torch.arange(m.t, device=m.device),
    "aten::eye": lambda m: torch.eye(m.t, device=m.device),
    "aten::eye.m": lambda m: torch.eye(m.b, m.t, device=m.device),
    "aten::linspace": lambda m: torch.linspace(0, 1, m.t, device=m.device),
}
CPU_ONLY = {name for name in CASES if "for_cpu" in name}
# Eager has no kernel on the CPU (the device's own is compared with itself in cells_test); on CUDA, its autograd fails beside another
# backend (pytorch#161129).
WITHOUT_EAGER = {name for name in CASES if "fused" in name} if EAGER == "cpu" else {"aten::linear_backward"}


def run(name, device, b, t):
    return [value for value in tree_flatten(CASES[name](Make(device, b, t)))[0] if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("name", sorted(CASES.keys() - (CPU_ONLY if EAGER != "cpu" else set())))
def test_a_new_size_is_recorded(name):
    torch_lazy.set_option("compile", "off")
    run(name, "lazy", 3, 5)
    torch_lazy.sync()
    for b, t in (4, 7), (2, 9):
        before = torch_lazy.metrics()["calls_immediate_by_op"].get(name, 0)
        results = run(name, "lazy", b, t)
        assert torch_lazy.metrics()["calls_immediate_by_op"].get(name, 0) == before
        if name in WITHOUT_EAGER:
            continue
        for result, expected in zip(results, run(name, EAGER, b, t), strict=True):
            assert (result.shape, result.stride(), result.dtype) == (expected.shape, expected.stride(), expected.dtype)
            torch.testing.assert_close(result.cpu(), expected.cpu(), equal_nan=True)


@pytest.mark.parametrize("make", [lambda m, n: m(3, n).t()[:, :1], lambda m, n: m(1, n).t(), lambda m, n: m(n, 1)])
@pytest.mark.parametrize("call", [torch.relu, lambda x: torch.where(x > 0, x, x), lambda x: x.flip(0), lambda x: x.cumsum(0), torch.triu])
def test_the_stride_of_a_dimension_of_one_element(call, make):
    def result(device, size):
        return call(make(Make(device, 1, 1), size))

    torch_lazy.set_option("compile", "off")
    for size in 4, 5, 6:
        call(Make("lazy", 1, 1)(size, 1))
        assert result("lazy", size).stride() == result(EAGER, size).stride()


# What they reserve for the backward pass is oneDNN's to say, and learned: python/recurrent_test.py.
RECURRENT = {"aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"}


def in_place(name):
    """`aten::scatter_.src` of `aten::scatter.src`."""
    operator, dot, overload = name.partition(".")
    return f"{operator}_{dot}{overload}"


def rules():
    """The overloads for which a row names a rule."""
    for path in SOURCES.glob("*.cc"):
        _, *parts = re.split(r'\{(?:\.name = )?"((?:aten|torch_lazy)::[\w.*]+)"', path.read_text())
        for name, row in zip(parts[::2], parts[1::2], strict=True):
            if re.search(r"(?:,\s+|\.shape = )shapes::", row):
                yield name
            if ".shape_in_place = shapes::" in row:
                yield in_place(name)


def test_every_rule_has_a_case():
    of_aten = [name for name in rules() if name.startswith("aten::")]
    assert sorted(of_aten) == sorted(CASES.keys() | RECURRENT)


# Calls that eager refuses because of sizes or integers, although calls like them were taken.
REFUSED = {
    "aten::copy_": lambda m: m.rows().copy_(m(m.t + 1, 6)),
    "aten::masked_fill.Scalar": lambda m: m.rows().masked_fill(m(m.b, m.t + 1, 6) > 0, 2),
    "aten::masked_fill_.Scalar": lambda m: m.rows().masked_fill_(m(m.b, m.t + 1, 6) > 0, 2),
    "aten::scatter.src": lambda m: m.rows().scatter(1, m.below(m.t, m.b + 1, m.t, 6), m.rows()),
    "aten::scatter_add_": lambda m: m.rows().scatter_add_(3, m.below(m.t, m.b, m.t, 6), m.rows()),
    "aten::index_add_": lambda m: m.rows().index_add_(1, torch.arange(m.t + 1).to(m.device), m.rows()),
    "aten::index_copy_": lambda m: m.rows().index_copy_(1, torch.arange(m.t).to(m.device), m(m.b + 1, m.t, 6)),
    "aten::_index_put_impl_": lambda m: aten._index_put_impl_(m.rows(), [torch.arange(m.b).to(m.device)], m(m.b, m.t + 1, 6)),
    "aten::addmm": lambda m: torch.addmm(m(m.t + 1), m(m.b, 6), m(6, m.t)),
    "aten::baddbmm": lambda m: torch.baddbmm(m(2, 5), m.rows(), m(m.b, 6, 5)),
    "aten::bmm": lambda m: m.rows().bmm(m.rows()),
    "aten::dot": lambda m: m(m.t).dot(m(m.t + 1)),
    "aten::linear": lambda m: torch.nn.functional.linear(m.rows(), m(5, 7), m(5)),
    "aten::mm": lambda m: m(m.b, 6).mm(m(7, m.t)),
    "aten::mv": lambda m: m(m.b, m.t).mv(m(m.t + 1)),
    "aten::_softmax": lambda m: m.rows().softmax(3),
    "aten::all.dim": lambda m: (m.rows() > 0).all(3),
    "aten::amax": lambda m: m.rows().amax((0, 0)),
    "aten::argmax": lambda m: m.rows().argmax(-4),
    "aten::cumsum": lambda m: m.below(5, m.b, m.t).cumsum(2),
    "aten::kthvalue": lambda m: m.rows().kthvalue(m.t + 1, 1),
    "aten::max.dim": lambda m: m.rows().max(3),
    "aten::mean": lambda m: m.rows().mean(dtype=torch.int64),
    "aten::mean.dim": lambda m: m.rows().mean((0, 5)),
    "aten::sum.dim_IntList": lambda m: m.below(5, m.b, m.t).sum((1, 1)),
    "aten::embedding_dense_backward": lambda m: aten.embedding_dense_backward(m.rows(), m.below(7, m.b, m.t + 1), 7, -1, False),
    "aten::mse_loss": lambda m: aten.mse_loss(m.rows(), m(m.b, m.t + 1, 6)),
    "aten::native_layer_norm": lambda m: aten.native_layer_norm(m.rows(), [7], m(7), m(7), 1e-5),
    "aten::native_group_norm": lambda m: aten.native_group_norm(m.image(), m(4), m(4), m.b, 4, 16 * m.t, 3, 1e-5),
    "aten::nll_loss_forward": lambda m: torch.nn.functional.nll_loss(m(m.b, 5), m.below(5, m.b + 1)),
    "aten::avg_pool2d": lambda m: torch.nn.functional.avg_pool2d(m.image(), 3, 2, 2, ceil_mode=True),
    "aten::constant_pad_nd": lambda m: torch.nn.functional.pad(m.rows(), (-9, 2, 0, 1)),
    "aten::convolution": lambda m: aten.convolution(m.image(5), m(4, 4, 3, 3), m(4), [2, 1], [1, 1], [1, 1], False, [0, 0], 1),
    "aten::max_pool2d_with_indices": lambda m: aten.max_pool2d_with_indices(m.image(), [3, 2], [2, 2], [2, 0]),
    "aten::cat": lambda m: torch.cat([m.rows(), m.rows(), m(m.b, 1, 7)], 1),
    "aten::flip": lambda m: m.rows().flip(3),
    "aten::gather": lambda m: m.rows().gather(1, m.below(m.t, m.b + 1, 2, 6)),
    "aten::index_select": lambda m: m.rows().index_select(3, m.below(m.t, m.t)),
    "aten::roll": lambda m: m.rows().roll(1, 3),
    "aten::sort.stable": lambda m: m.rows().sort(3),
    "aten::topk": lambda m: m.rows().topk(m.t + 1, 1),
    "aten::where.self": lambda m: torch.where(m.rows() > 0, m.rows(), m(7)),
    "aten::eye": lambda m: torch.eye(-m.t, device=m.device),
    "aten::linspace": lambda m: torch.linspace(0, 1, -m.t, device=m.device),
}


def error_of(call, device, b, t):
    with pytest.raises(Exception) as caught:
        call(Make(device, b, t))
    return type(caught.value), str(caught.value).replace("lazy:0", EAGER).replace("cuda:0", EAGER).splitlines()[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses_is_refused_at_the_call(name):
    torch_lazy.set_option("compile", "off")
    run(name, "lazy", 3, 5)
    for b, t in (3, 5), (4, 7):
        assert error_of(REFUSED[name], "lazy", b, t) == error_of(REFUSED[name], EAGER, b, t)


COMMON = """
import sys, torch, torch_lazy
f, i = torch.randn(5, 7, device="lazy"), torch.randint(9, (5, 7), device="lazy")
b, h = f > 0.5, f.bfloat16()
for _ in range(5):  # run at once, learned from, recorded, compiled
    for x in (f * b, b * i, f * i, f / i, i == 3, i != 0, h > 0, h < 0.5, b == 0, i + 1, i * 2, 1 - i, h * h, h + 1, b & b, torch.where(b, f, f),
              f.masked_fill(b, -1), i.masked_fill(b, 2), f.masked_fill(b, f.sum()), f.clone().masked_fill_(b, 0.5), i.clone().masked_fill_(b, 1)):
        x.sum().item()
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
"""


def test_common_calls_wait_for_no_import():
    """Python's Meta kernels import packages for a second or two, which eager's own kernels do not."""
    run = subprocess.run([sys.executable, "-c", COMMON], capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("[]\n", 0), run.stderr
