# SPDX-License-Identifier: Apache-2.0
"""Every row of device/rows against eager on the CPU, compiled; and that it is the row that ran.

A case calls one overload on tensors `t` of its table. All cases of a dtype are recorded, then cut once. `exact` rows give
eager's numbers bit for bit (a zero's sign and a NaN's bits aside); for the others the error against f64 is at most
twice eager's own.
"""

import json
import math
import os
import pathlib
import re
import types

import pytest
import torch

import torch_lazy

from cells import gru_cell, gru_cell_backward, lstm_cell, lstm_cell_backward

aten = torch.ops.aten
SOURCES = pathlib.Path(__file__).parents[2] / "device" / "rows"
FOR_CUDA = os.environ.get("LAZY_BACKEND") == "stand_in"
ROWS_OF_CUDA = {"max_pool2d_with_indices_backward", "nll_loss_forward", "nll_loss2d_forward"}  # which the CPU leaves to ATen
FLOATS = [torch.float32, torch.float64, torch.bfloat16]
REALS = FLOATS + [torch.int64, torch.uint8]
PRODUCTS = [torch.float32, torch.float64] + [torch.bfloat16] * FOR_CUDA
SHAPE = (6, 64)  # whole vectors: what is left over ATen rounds otherwise than the rest, in 16 bits and where it fuses


def tensors(dtype, device):
    """x has special values, y and z none; p is positive, u and v between 0 and 1; m is bool, c are classes, d their scores."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        numbers = torch.randn(shape, generator=generator) * 3
        return numbers.to(dtype) if dtype.is_floating_point else numbers.round().abs().to(dtype)

    x, y, z, w = (normal(*SHAPE) for _ in range(4))
    if dtype.is_floating_point:
        x[0, :8] = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5])
        y[1, 1] = x[1, 1]
    u = torch.rand(SHAPE, generator=generator)
    t = types.SimpleNamespace(
        x=x, y=y, z=z, w=w, p=y.abs() + 1, u=u.to(dtype) if dtype.is_floating_point else x, v=u.flip(0).to(dtype), m=z > 0,
        row=normal(SHAPE[1]), weights=normal(SHAPE[1]).abs(), number=normal(1)[0].abs() + 1, tail=torch.exp(-y.double().abs()).to(dtype),
        c=torch.randint(0, SHAPE[1], SHAPE[:1], generator=generator), image=normal(3, 4, 5, 5), channel=normal(4),
        stat=normal(4).abs() + 1, lists=[[normal(3, 64), normal(64)] for _ in range(3)],
        positive=[normal(3, 64).abs() + 1, normal(64).abs() + 1], places=torch.tensor([4, 0, 3]),
    )
    t.c[2] = -100
    t.host = torch.tensor(0.3)
    place = lambda v: [place(e) for e in v] if isinstance(v, list) else v.to(device)  # noqa: E731
    return types.SimpleNamespace(**{name: v if name == "host" else place(v) for name, v in vars(t).items()})


class Case:
    def __init__(self, name, call, dtypes, exact):
        self.name, self.call, self.dtypes, self.exact = name, call, dtypes, exact


CASES = []


def case(name, call, dtypes=FLOATS, exact=True):
    CASES.append(Case(name, call, dtypes, exact))


def op(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def linear_backward(x, gradient, weight):
    """aten::linear_backward, which has no kernel on the CPU."""
    if x.device.type == "lazy":
        return aten.linear_backward(x, gradient, weight, [True] * 3)
    return gradient @ weight, gradient.t() @ x, gradient.sum(0)


def pool_backward(t, kernel, stride, padding, layout):
    """Of neighbours that are equal now and then."""
    x = t.image[:, :, :4, :4].round().contiguous(memory_format=layout)
    y, indices = aten.max_pool2d_with_indices(x, kernel, stride, padding)
    return aten.max_pool2d_with_indices_backward(y * 3, x, kernel, stride, padding, [1, 1], False, indices)


for name in "neg abs".split():
    case(name, lambda t, f=op(name): f(t.x), REALS if name == "abs" else FLOATS + [torch.int64])
for name in "rsqrt reciprocal floor ceil trunc round frac sign sgn isnan isposinf isneginf logical_not nan_to_num".split():
    case(name, lambda t, f=op(name): f(t.x), REALS if "is" in name or "log" in name or "num" in name else FLOATS)
for name in "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan tanh erf sigmoid silu mish".split():
    case(name, lambda t, f=op(name): f(t.y), exact=False)
for name in "relu hardswish hardsigmoid".split():
    case(name, lambda t, f=op(name): f(t.x), FLOATS[:2])
case("nan_to_num", lambda t: aten.nan_to_num(t.x, 1.5, 2.5, -3.5))
case("bitwise_not", lambda t: aten.bitwise_not(t.x), [torch.int64, torch.uint8])
case("bitwise_not", lambda t: aten.bitwise_not(t.m))
for name in "and or xor".split():
    case(f"bitwise_{name}.Tensor", lambda t, f=op(f"bitwise_{name}.Tensor"): f(t.x, t.y), [torch.int64, torch.uint8])
    case(f"logical_{name}", lambda t, f=op(f"logical_{name}"): f(t.x, t.m), REALS)
for name in "eq ne lt le gt ge".split():
    case(f"{name}.Tensor", lambda t, f=op(f"{name}.Tensor"): f(t.x, t.y), REALS)
    case(f"{name}.Tensor", lambda t, f=op(f"{name}.Tensor"): f(t.x, t.c[:1]), REALS)
    case(f"{name}.Scalar", lambda t, f=op(f"{name}.Scalar"): f(t.x, 1), REALS)
    case(f"{name}.Scalar", lambda t, f=op(f"{name}.Scalar"): f(t.x, 0.3), REALS)
for name in "add sub".split():
    case(f"{name}.Tensor", lambda t, f=op(f"{name}.Tensor"): f(t.x, t.y), REALS)
    case(f"{name}.Tensor", lambda t, f=op(f"{name}.Tensor"): f(t.x, t.row, alpha=2), REALS)
    case(f"{name}.Tensor", lambda t, f=op(f"{name}.Tensor"): f(t.x, t.y, alpha=0.3))
    case(f"{name}.Tensor", lambda t, f=op(f"{name}.Tensor"): f(t.x, t.host))
    case(f"{name}.Scalar", lambda t, f=op(f"{name}.Scalar"): f(t.x, 2), REALS)
    case(f"{name}.Scalar", lambda t, f=op(f"{name}.Scalar"): f(t.x, 0.3), REALS)
    case(f"{name}.Scalar", lambda t, f=op(f"{name}.Scalar"): f(t.x, 0.3, alpha=1.7))
    case(f"{name}.Scalar", lambda t, f=op(f"{name}_.Scalar"): f(t.x.clone(), 0.3))
case("add.Tensor", lambda t: t.y.clone().add_(t.row, alpha=0.3))
case("add.Tensor", lambda t: aten.add.out(t.x, t.y, alpha=0.3, out=torch.empty_like(t.y)))
case("add.Tensor", lambda t: aten.add.Tensor(t.m, t.z > 1))
case("rsub.Tensor", lambda t: aten.rsub.Tensor(t.x, t.y, alpha=2), REALS)
for name in "mul.Tensor maximum minimum fmax fmin".split():
    case(name, lambda t, f=op(name): f(t.x, t.y), REALS)
    case(name, lambda t, f=op(name): f(t.x, t.host))
for name in "div.Tensor floor_divide remainder.Tensor fmod.Tensor".split():
    case(name, lambda t, f=op(name): f(t.x, t.y), FLOATS[:2] if name == "floor_divide" else FLOATS)
for name in "mul div".split():
    case(f"{name}.Scalar", lambda t, f=op(f"{name}.Scalar"): f(t.x, 3), REALS)
    case(f"{name}.Scalar", lambda t, f=op(f"{name}.Scalar"): f(t.x, 0.3), REALS)
case("mul_.Scalar", lambda t: aten.mul_.Scalar(t.x.clone(), 0.3))
case("div.Scalar", lambda t: aten.div_.Scalar(t.x.clone(), 0.3))
case("div.Tensor", lambda t: aten.div.Tensor(t.x, t.p), REALS)
case("div.Tensor", lambda t: aten.div.Tensor(t.x, t.host))
for mode in ("trunc", "floor", None):
    case("div.Tensor_mode", lambda t, mode=mode: aten.div.Tensor_mode(t.x, t.y, rounding_mode=mode),
         FLOATS[:2] if mode == "floor" else FLOATS)
for exponent in (0, 1, 2, 3):
    case("pow.Tensor_Scalar", lambda t, e=exponent: aten.pow.Tensor_Scalar(t.x, e), FLOATS + [torch.int64])
for exponent in (-0.5, -1, -2):
    case("pow.Tensor_Scalar", lambda t, e=exponent: aten.pow.Tensor_Scalar(t.p, e))
for exponent in (0.5, 1.7, -3):
    case("pow.Tensor_Scalar", lambda t, e=exponent: aten.pow.Tensor_Scalar(t.p, e), exact=False)
case("pow.Tensor_Tensor", lambda t: aten.pow.Tensor_Tensor(t.p, t.y), exact=False)
case("pow.Scalar", lambda t: aten.pow.Scalar(1.3, t.y), exact=False)
case("atan2", lambda t: aten.atan2(t.y, t.z), exact=False)
case("xlogy.Tensor", lambda t: aten.xlogy.Tensor(t.y, t.p), exact=False)
case("logaddexp", lambda t: aten.logaddexp(t.y, t.z), exact=False)

case("where.self", lambda t: aten.where.self(t.m, t.x, t.row), REALS)
case("masked_fill.Scalar", lambda t: t.x.clone().masked_fill_(t.m, 2), REALS)
case("masked_fill.Tensor", lambda t: t.x.clone().masked_fill_(t.m, t.number), REALS)
case("clamp", lambda t: aten.clamp(t.x, 1, 2), FLOATS + [torch.int64])
case("clamp", lambda t: aten.clamp(t.x, max=0.3))
case("clamp.Tensor", lambda t: aten.clamp.Tensor(t.y, t.z, t.row), FLOATS + [torch.int64])
case("clamp_min", lambda t: aten.clamp_min(t.x, 0.3))
case("clamp_max", lambda t: aten.clamp_max(t.x, 0.3))
case("clamp_min.Tensor", lambda t: aten.clamp_min.Tensor(t.x, t.row), FLOATS + [torch.int64])
case("clamp_max.Tensor", lambda t: aten.clamp_max.Tensor(t.x, t.row), FLOATS + [torch.int64])
case("hardtanh", lambda t: aten.hardtanh(t.x, -0.7, 0.9))
for low, high in ((math.nan, None), (None, math.nan), (math.nan, 1), (-1, math.nan)):
    case("clamp", lambda t, low=low, high=high: aten.clamp(t.x, low, high))
case("clamp_min", lambda t: aten.clamp_min(t.x, math.nan))
case("clamp_max", lambda t: aten.clamp_max(t.x, math.nan))
case("hardtanh", lambda t: aten.hardtanh(t.x, math.nan, 0.9))
case("addcmul", lambda t: aten.addcmul(t.x, t.y, t.row, value=2), FLOATS + [torch.int64])
case("addcmul", lambda t: aten.addcmul(t.x, t.y, t.z, value=0.3), FLOATS[:2])
case("addcdiv", lambda t: aten.addcdiv(t.x, t.y, t.p, value=0.3))
case("lerp.Scalar", lambda t: aten.lerp.Scalar(t.y, t.z, 0.3))
case("lerp.Scalar", lambda t: aten.lerp.Scalar(t.y, t.z, 0.7))
case("lerp.Tensor", lambda t: aten.lerp.Tensor(t.y, t.z, t.u))

case("threshold", lambda t: aten.threshold(t.x, 0.3, 2), FLOATS)
case("threshold_backward", lambda t: aten.threshold_backward(t.y, t.x, 0))
case("hardtanh_backward", lambda t: aten.hardtanh_backward(t.y, t.z, -0.7, 0.9))
case("leaky_relu", lambda t: aten.leaky_relu(t.x, 0.1), FLOATS[:2])
case("leaky_relu_backward", lambda t: aten.leaky_relu_backward(t.y, t.z, 0.1, False), FLOATS[:2])
case("elu", lambda t: aten.elu(t.y, 1.3, 1.1, 0.9), exact=False)
for is_result in (False, True):
    case("elu_backward", lambda t, r=is_result: aten.elu_backward(t.y, 1.3, 1.1, 0.9, r, t.z), exact=False)
for form in ("none", "tanh"):
    case("gelu", lambda t, form=form: aten.gelu(t.y, approximate=form), exact=False)
    case("gelu_backward", lambda t, form=form: aten.gelu_backward(t.z, t.y, approximate=form), exact=False)
case("softplus", lambda t: aten.softplus(t.y, 2, 1.5), exact=False)
case("softplus_backward", lambda t: aten.softplus_backward(t.z, t.y, 2, 1.5), exact=False)
case("hardshrink", lambda t: aten.hardshrink(t.x, 0.5))
case("hardshrink_backward", lambda t: aten.hardshrink_backward(t.y, t.z, 0.5))
case("softshrink", lambda t: aten.softshrink(t.x, 0.5))
case("softshrink_backward", lambda t: aten.softshrink_backward(t.y, t.z, 0.5))
case("log_sigmoid_forward", lambda t: aten.log_sigmoid_forward(t.y), exact=False)
case("log_sigmoid_backward", lambda t: aten.log_sigmoid_backward(t.z, t.y, t.tail), exact=False)
for name in "sigmoid tanh".split():
    case(f"{name}_backward", lambda t, f=op(f"{name}_backward"): f(t.y, t.u), FLOATS[:2])
for name in "silu mish".split():
    case(f"{name}_backward", lambda t, f=op(f"{name}_backward"): f(t.y, t.z), exact=False)
for name in "hardswish hardsigmoid".split():
    case(f"{name}_backward", lambda t, f=op(f"{name}_backward"): f(t.y, t.z), FLOATS[:2])
case("native_dropout_backward", lambda t: aten.native_dropout_backward(t.y, t.m, 1.25))

case("copy_", lambda t: torch.empty_like(t.x).copy_(t.row), REALS)
case("copy_", lambda t: torch.empty_like(t.y, dtype=torch.int32).copy_(t.y), REALS)
case("clone", lambda t: aten.clone(t.x.t()), REALS)
case("cat", lambda t: aten.cat([t.x, t.y[:, :3], t.x], 1), REALS)
case("stack", lambda t: aten.stack([t.x, t.y, t.x], 1), REALS)
case("constant_pad_nd", lambda t: aten.constant_pad_nd(t.x, [1, 2, 0, 3], 2), REALS)
case("slice_backward", lambda t: aten.slice_backward(t.x[:, 1:5], [6, 64], 1, -60, -56, 1), REALS)
case("select_backward", lambda t: aten.select_backward(t.row, [6, 64], 0, -2), REALS)
case("max_pool2d_with_indices", lambda t: aten.max_pool2d_with_indices(t.image, [3, 2], [2, 1], [1, 0]), FLOATS)
if FOR_CUDA:  # on the CPU its gradient is ATen's
    for sizes in ([3, 3], [2, 2], [1, 1]), ([2, 2], [2, 1], [0, 0]), ([3, 2], [1, 2], [0, 0]), ([1, 1], [2, 2], [0, 0]):
        for layout in torch.contiguous_format, torch.channels_last:
            case("max_pool2d_with_indices_backward", lambda t, s=sizes, f=layout: pool_backward(t, *s, f), FLOATS, exact=False)
case("mm", lambda t: aten.mm(t.y, t.z.t()), PRODUCTS, exact=False)
case("bmm", lambda t: aten.bmm(t.image[0], t.image[1].transpose(1, 2)), PRODUCTS, exact=False)
# Scaled 16-bit products are ATen's (products_test.py).
case("addmm", lambda t: aten.addmm(t.row[:6], t.y, t.z.t(), beta=0.5, alpha=2), PRODUCTS[:2], exact=False)
case("addmm", lambda t: aten.addmm(t.row[:6], t.y, t.z.t()), PRODUCTS, exact=False)
case("baddbmm", lambda t: aten.baddbmm(t.image[2], t.image[0], t.image[1], beta=0), PRODUCTS, exact=False)
case("linear", lambda t: aten.linear(t.y.view(2, 3, 64), t.z, t.row[:6]), PRODUCTS, exact=False)
case("linear_backward", lambda t: linear_backward(t.y, t.z[:, :5], t.w[:5]), PRODUCTS, exact=False)
case("fill_.Scalar", lambda t: torch.empty_like(t.x).fill_(3), REALS)
case("fill_.Tensor", lambda t: torch.empty_like(t.x).fill_(t.number), REALS)
case("zero_", lambda t: torch.empty_like(t.x).zero_(), REALS)
for diagonal in (0, 2, -3):
    case("tril", lambda t, d=diagonal: aten.tril(t.x, d), REALS)
    case("triu", lambda t, d=diagonal: aten.triu(t.x, d), REALS)
case("sum", lambda t: aten.sum(t.y), REALS, exact=False)
for dims, keepdim in (([1], False), ([0], True), ([-1, 0], False), (None, True), ([], False)):
    case("sum.dim_IntList", lambda t, d=dims, k=keepdim: aten.sum.dim_IntList(t.y, d, k), REALS, exact=False)
    case("amax", lambda t, d=dims, k=keepdim: aten.amax(t.x, d or [], k), REALS)
    case("amin", lambda t, d=dims, k=keepdim: aten.amin(t.x, d or [], k), REALS)
    case("mean.dim", lambda t, d=dims, k=keepdim: aten.mean.dim(t.y, d, k), exact=False)
    case("logsumexp", lambda t, d=dims, k=keepdim: aten.logsumexp(t.y, d or [0, 1], k), exact=False)
case("mean.dim", lambda t: aten.mean.dim(t.c, [0], dtype=torch.float32), exact=False)
case("prod", lambda t: aten.prod(t.u), exact=False)
case("prod.dim_int", lambda t: aten.prod.dim_int(t.u, 0, True), exact=False)
for name in "max min".split():
    case(name, lambda t, f=op(name): f(t.y), REALS)
    for dim in (0, -1):
        case(f"{name}.dim", lambda t, f=op(f"{name}.dim"), d=dim: f(t.x, d), FLOATS + [torch.int64])
        case(f"arg{name}", lambda t, f=op(f"arg{name}"), d=dim: f(t.x, d, True), FLOATS + [torch.int64])
case("aminmax", lambda t: aten.aminmax(t.y, dim=1), FLOATS + [torch.int64])
for name in "any all".split():
    case(name, lambda t, f=op(name): f(t.x), REALS)
    case(f"{name}.dim", lambda t, f=op(f"{name}.dim"): f(t.x, 0), REALS)
    case(f"{name}.dims", lambda t, f=op(f"{name}.dims"): f(t.x, [0, 1], True), REALS)
for name in "var std var_mean std_mean".split():
    for correction in (None, 0, 2):
        case(f"{name}.correction", lambda t, f=op(f"{name}.correction"), c=correction: f(t.y, [1], correction=c), exact=False)
for order in (2, 1, 0, math.inf, -math.inf):
    case("linalg_vector_norm", lambda t, o=order: aten.linalg_vector_norm(t.y, o, [1], True), exact=False)
case("norm.ScalarOpt_dim", lambda t: aten.norm.ScalarOpt_dim(t.y, None, [0]), exact=False)
case("norm.ScalarOpt_dim_dtype", lambda t: aten.norm.ScalarOpt_dim_dtype(t.y, 2, [0], False, dtype=torch.float64), exact=False)

for name in "_softmax _log_softmax".split():
    for dim in (0, -1):
        case(name, lambda t, f=op(name), d=dim: f(t.y, d, False), exact=False)
        case(f"{name}_backward_data", lambda t, f=op(f"{name}_backward_data"), d=dim: f(t.z, t.u, d, t.z.dtype), exact=False)

case("native_layer_norm", lambda t: aten.native_layer_norm(t.y, [SHAPE[1]], t.row, t.row, 1e-5), exact=False)
case("native_layer_norm", lambda t: aten.native_layer_norm(t.y, list(SHAPE), None, None, 1e-5), exact=False)
case("native_layer_norm_backward", lambda t: aten.native_layer_norm_backward(
    t.z, t.y, [SHAPE[1]], *aten.native_layer_norm(t.y, [SHAPE[1]], t.row, t.row, 1e-5)[1:], t.row, t.row, [True, True, True]),
    FLOATS[:2], exact=False)
for groups in (1, 4):
    case("native_group_norm", lambda t, g=groups: aten.native_group_norm(t.image, t.channel, t.channel, 3, 4, 25, g, 1e-5), exact=False)
    case("native_group_norm_backward", lambda t, g=groups: aten.native_group_norm_backward(
        t.image * 2, t.image, *aten.native_group_norm(t.image, t.channel, None, 3, 4, 25, g, 1e-5)[1:], t.channel, 3, 4, 25, g,
        [True, True, True]), FLOATS[:2], exact=False)
case("_native_batch_norm_legit_no_training", lambda t: aten._native_batch_norm_legit_no_training(
    t.image, t.channel, t.channel, t.channel, t.stat, 0.1, 1e-5)[0], exact=False)
case("_native_batch_norm_legit.no_stats", lambda t: aten._native_batch_norm_legit.no_stats(
    t.image, t.channel, None, True, 0.1, 1e-5), exact=False)
case("_native_batch_norm_legit", lambda t: _written([t.channel, t.stat], lambda stats: aten._native_batch_norm_legit(
    t.image, t.channel, t.channel, *stats, True, 0.1, 1e-5)), exact=False)
case("_native_batch_norm_legit", lambda t: aten._native_batch_norm_legit(
    t.image, t.channel, t.channel, t.channel.clone(), t.stat.clone(), True, 0.1, 1e-5), exact=False)
for training in (True, False):
    case("native_batch_norm_backward", lambda t, train=training: aten.native_batch_norm_backward(
        t.image * 2, t.image, t.channel, t.channel, t.stat, t.channel, t.stat, train, 1e-5, [True, True, True]),
        FLOATS[:2], exact=False)

for reduction in (0, 1, 2):
    gradient = lambda t, r=reduction: t.w if r == 0 else t.number  # noqa: E731
    for name, numbers in (("mse_loss", ()), ("smooth_l1_loss", (0.7,)), ("huber_loss", (0.7,))):
        case(name, lambda t, f=op(name), r=reduction, n=numbers: f(t.y, t.z, r, *n), exact=False)
        case(f"{name}_backward", lambda t, f=op(f"{name}_backward"), r=reduction, n=numbers, g=gradient:
             f(g(t), t.y, t.z, r, *n), FLOATS[:2], exact=False)
    for weighted in (False, True):
        case("binary_cross_entropy", lambda t, r=reduction, w=weighted: aten.binary_cross_entropy(
            t.u, t.v, t.row if w else None, r), FLOATS[:2], exact=False)
        case("binary_cross_entropy_backward", lambda t, r=reduction, w=weighted, g=gradient: aten.binary_cross_entropy_backward(
            g(t), t.u, t.v, t.row if w else None, r), FLOATS[:2], exact=False)
        case("nll_loss_backward", lambda t, r=reduction, w=weighted: aten.nll_loss_backward(
            t.row[:6] if r == 0 else t.number, t.y, t.c, t.weights if w else None, r, -100,
            t.number), FLOATS[:2], exact=False)
        if FOR_CUDA:
            case("nll_loss_forward", lambda t, r=reduction, w=weighted: aten.nll_loss_forward(
                t.y, t.c, t.weights if w else None, r, -100), FLOATS[:2], exact=False)
    if FOR_CUDA:
        case("nll_loss2d_forward", lambda t, r=reduction: aten.nll_loss2d_forward(
            t.image, (t.image[:, 0] > 0).long(), None, r, 1), FLOATS[:2], exact=False)
    case("nll_loss2d_backward", lambda t, r=reduction: aten.nll_loss2d_backward(
        t.image[:, 0] if r == 0 else t.number, t.image, (t.image[:, 0] > 0).long(), None, r, 1, t.number),
        FLOATS[:2], exact=False)

for name in "neg abs reciprocal rsqrt".split():
    case(f"_foreach_{name}", lambda t, f=op(f"_foreach_{name}"): f(t.lists[0]))
for name in "sqrt exp log".split():
    case(f"_foreach_{name}", lambda t, f=op(f"_foreach_{name}"): f(t.positive), exact=False)
for name in "add sub mul div".split():
    f = getattr(aten, f"_foreach_{name}")
    case(f"_foreach_{name}.List", lambda t, f=f: f.List(t.lists[0], t.lists[1]))
    case(f"_foreach_{name}.Scalar", lambda t, f=f: f.Scalar(t.lists[0], 0.3))
    case(f"_foreach_{name}.ScalarList", lambda t, f=f: f.ScalarList(t.lists[0], [0.3, -2.0]))
for base in 0.9, 1.0:
    case("_foreach_pow.ScalarAndTensor", lambda t, base=base: aten._foreach_pow.ScalarAndTensor(base, t.lists[0]), exact=False)
for name in "add mul div".split():
    case(f"_foreach_{name}.Tensor", lambda t, f=op(f"_foreach_{name}.Tensor"): f(t.lists[0], t.number))
case("_foreach_add.List", lambda t: _written(t.lists[0], lambda x: torch._foreach_add_(x, t.lists[1], alpha=-0.3)))
for name in "maximum minimum".split():
    case(f"_foreach_{name}.List", lambda t, f=op(f"_foreach_{name}.List"): f(t.lists[0], t.lists[1]))
for name in "maximum minimum clamp_min clamp_max".split():
    for bound in (0.3, math.nan):
        case(f"_foreach_{name}.Scalar", lambda t, f=op(f"_foreach_{name}.Scalar"), bound=bound: f(t.lists[0], bound))
case("_foreach_lerp.Scalar", lambda t: _written(t.lists[0], lambda x: torch._foreach_lerp_(x, t.lists[1], 0.1)))
case("_foreach_lerp.List", lambda t: aten._foreach_lerp.List(t.lists[0], t.lists[1], t.lists[2]), FLOATS[:2])
case("_foreach_lerp.ScalarList", lambda t: aten._foreach_lerp.ScalarList(t.lists[0], t.lists[1], [0.1, 0.9]))
for name in "addcmul addcdiv".split():
    f = getattr(aten, f"_foreach_{name}")
    case(f"_foreach_{name}.Scalar", lambda t, f=f: f.Scalar(*t.lists[:3], 0.3), FLOATS[:2])
    case(f"_foreach_{name}.ScalarList", lambda t, f=f: f.ScalarList(*t.lists[:3], [0.3, -2.0]), FLOATS[:2])
case("_foreach_copy_", lambda t: _written(t.lists[0], lambda x: torch._foreach_copy_(x, t.lists[1])))
case("_foreach_zero_", lambda t: _written(t.lists[0], torch._foreach_zero_))
case("_foreach_norm.Scalar", lambda t: aten._foreach_norm.Scalar(t.lists[0], 2), exact=False)
for name in ("_fused_adam_", "_fused_adamw_"):
    case(name, lambda t, f=getattr(torch, name): _adam(t, f, 0.01), [torch.float32], exact=False)
    case(f"{name}.tensor_lr", lambda t, f=getattr(torch, name): _adam(t, f, torch.tensor(0.01)), [torch.float32], exact=False)


def _written(items, write):
    copies = [x.clone() for x in items]
    write(copies)
    return copies


def _adam(t, step, rate):
    params, grads, averages, squares = ([x.clone() for x in items] for items in (*t.lists, t.positive))
    steps = [torch.full_like(params[0].sum(), 3, dtype=torch.float32) for _ in params]
    step(params, grads, averages, squares, [], steps, lr=rate, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8,
         amsgrad=False, maximize=False)
    return [params, averages, squares]


case("index_copy", lambda t: [t.x.index_copy(-1, t.places[1:], t.y[:, :2]), t.x.t().clone().t().index_copy_(0, t.places, t.y[:3])], REALS * FOR_CUDA)
case("_index_put_impl_", lambda t: aten._index_put_impl_(t.x.clone(), [None, t.places - 5], t.row[:3]), REALS * FOR_CUDA)
CELLS = FLOATS[:2] + [torch.bfloat16] * FOR_CUDA  # the CPU's are ATen's in 16 bits, which round at each step
case("_thnn_fused_lstm_cell", lambda t: lstm_cell(t.y, t.z, t.w[:, :16], t.row, t.weights), CELLS, exact=False)
case("_thnn_fused_lstm_cell_backward_impl", lambda t: lstm_cell_backward(t.y[:, :16], t.z[:, :16], t.w[:, :16], t.w[:, 16:32], t.u), CELLS, exact=False)
case("_thnn_fused_lstm_cell_backward_impl", lambda t: lstm_cell_backward(None, t.z[:, :16], t.w[:, :16], t.w[:, 16:32], t.u), CELLS, exact=False)
case("_thnn_fused_lstm_cell_backward_impl", lambda t: lstm_cell_backward(t.y[:, :16], None, t.w[:, :16], t.w[:, 16:32], t.u), CELLS, exact=False)
case("_thnn_fused_gru_cell", lambda t: gru_cell(t.y[:, :48], t.z[:, :48], t.w[:, :16], t.row[:48], t.weights[:48]), CELLS, exact=False)
case("_thnn_fused_gru_cell", lambda t: gru_cell(t.y[:, :48], t.z[:, :48], t.w[:, :16], None, None), CELLS, exact=False)
case("_thnn_fused_gru_cell_backward", lambda t: gru_cell_backward(t.y[:, :8], t.u[:, :40]), CELLS, exact=False)


def metrics():
    return json.loads(torch.ops.torch_lazy.metrics())


def leaves(result):
    return [e for item in result for e in leaves(item)] if isinstance(result, (list, tuple)) else [result]


def run(cases, dtype):
    """The results of the cases from a compiled trace, and how many of its calls had no lowering."""
    torch_lazy.set_option("compile", "sync")
    t = tensors(dtype, "lazy")
    for _ in range(5):
        torch.ops.torch_lazy.sync()
        before = metrics()
        results = [leaves(c.call(t)) for c in cases]
        torch.ops.torch_lazy.sync()
        after = metrics()
        if after["traces_interpreted"] == before["traces_interpreted"]:
            break
    else:
        pytest.fail("never compiled")
    not_lowered = sum(after[kind] - before[kind] for kind in ("calls_recorded", "calls_immediate"))
    return [[leaf.cpu() for leaf in result] for result in results], not_lowered


def complaint(c, dtype, actual, host, precise):
    expected = leaves(c.call(host))
    for index, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if a.dtype != e.dtype or a.shape != e.shape:
            return f"result {index} is {a.dtype} {list(a.shape)}, not {e.dtype} {list(e.shape)}"
        if c.exact or not e.dtype.is_floating_point:
            wrong = (a != e) & ~((a != a) & (e != e))
            if wrong.any():
                return f"result {index}: {int(wrong.sum())} of {e.numel()} differ, {a[wrong][0]} for {e[wrong][0]}"
            continue
        reference = leaves(c.call(precise))[index].double()
        error, eager = ((r.double() - reference).abs().nan_to_num(0) for r in (a, e))
        ulps = 64 if e.dtype == torch.float64 else 4  # nothing here is more precise than f64
        limit = 2 * eager.max() + ulps * torch.finfo(e.dtype).eps * reference.abs().nan_to_num(0, 0, 0).max().clamp(min=1)
        if not torch.equal(a.isfinite(), e.isfinite()) or (error > limit).any():
            return f"result {index}: error {error.max():.3g}, eager's {eager.max():.3g}"
    return None


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_rows_equal_eager(dtype):
    cases = [c for c in CASES if dtype in c.dtypes]
    results, not_lowered = run(cases, dtype)
    host = tensors(dtype, "cpu")
    precise = tensors(dtype, "cpu")
    for name, value in vars(precise).items():
        wide = lambda v: [wide(e) for e in v] if isinstance(v, list) else v.double() if v.is_floating_point() else v  # noqa: E731
        setattr(precise, name, wide(value))
    complaints = []
    for c, actual in zip(cases, results, strict=True):
        wrong = complaint(c, dtype, actual, host, precise)
        if wrong:
            complaints.append(f"{c.name}: {wrong}")
    if not_lowered:
        complaints += [f"{c.name} was not lowered" for c in cases if run([c], dtype)[1]]
    assert not complaints, "\n".join(complaints)


def row_names():
    lowered = re.compile(r'\{"aten::([\w.]+)"|\{\.name = "aten::([\w.]+)",\s*\.lower')
    names = {short or long for path in SOURCES.glob("*.cc") for short, long in lowered.findall(path.read_text())}
    assert len(names) > 200
    return names


def test_each_row_has_a_case():
    assert row_names() - {c.name for c in CASES} == (set() if FOR_CUDA else ROWS_OF_CUDA)


def test_a_target_that_is_no_class():
    """The CPU's raises, as eager's; on a GPU, where eager's ends the program, the loss is NaN."""
    torch_lazy.set_option("compile", "sync")
    scores = torch.randn(6, 9, device="lazy").log_softmax(1)
    for _ in range(3):
        classes = torch.tensor([0, 8, -100, 3, 9, 1]).to("lazy")
        if FOR_CUDA:
            loss = torch.nn.functional.nll_loss(scores, classes, reduction="none")
            losses = loss.tolist()
        else:
            with pytest.raises(IndexError, match="Target 9 is out of bounds"):
                torch.nn.functional.nll_loss(scores, classes).item()
    assert not FOR_CUDA or [math.isnan(value) for value in losses] == [False, False, False, False, True, False]


def test_each_row_names_an_operator():
    for name in row_names():
        op(name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_quotients_of_halves_next_to_an_integer(dtype):
    torch_lazy.set_option("compile", "sync")
    x, y = torch.randn(2, 4096, generator=torch.Generator().manual_seed(0)).mul(8).to(dtype)
    for divide in (lambda a, b: a // b, lambda a, b: a.div(b, rounding_mode="floor"), lambda a, b: a // 0.3):
        for _ in range(3):
            assert torch.equal(divide(x.to("lazy"), y.to("lazy")).cpu(), divide(x, y))


# Items of the first list and of the second, by the tensor whose memory they share.
LISTS = {
    "one tensor twice": lambda x: ([x, x], [x.clone(), x.clone()]),
    "a tensor and its view": lambda x: ([x.view(-1), x.t()], [x.clone().view(-1), x.clone().t()]),
    "each reads the other": lambda x: ([x[:2], x[2:]], [x[2:], x[:2]]),
    "parts of one storage": lambda x: ([x[:2], x[2:]], [x[:2].clone(), x[2:].clone()]),
    "itself": lambda x: ([x], [x]),
}
FOREACH = {"mul": lambda a, b: torch._foreach_mul_(a, [2.0, 3.0][:len(a)]), "add": torch._foreach_add_, "copy": torch._foreach_copy_}


@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("call", FOREACH.values(), ids=FOREACH)
def test_items_are_taken_in_turn(call, lists):
    torch_lazy.set_option("compile", "sync")
    host = torch.arange(16.0).view(4, 4)
    starts = [host.to("lazy") for _ in range(3)]
    call(*lists(host))
    for x in starts:
        call(*lists(x))
        assert torch.equal(x.cpu(), host)


def test_what_is_read_while_it_is_written():
    torch_lazy.set_option("compile", "sync")
    host = torch.tensor([[1.0, -2, 3], [0, 5, -6]]).t()
    starts = [host.to("lazy") for _ in range(3)]
    host += host[0]  # each element in its turn, the first row before the others
    for x in starts:
        x += x[0]
        assert torch.equal(x.cpu(), host)
