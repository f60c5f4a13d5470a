# SPDX-License-Identifier: Apache-2.0
"""Elementwise results have eager's strides, also where a dimension has one element and strides say little."""

import itertools

import pytest
import torch
import torch_lazy  # noqa: F401
from torch.nn import functional as F

OPS = {
    "number added": lambda x, y: x + 2,
    "from number": lambda x, y: 2 - x,
    "times number": lambda x, y: x * 2,
    "by number": lambda x, y: x / 2,
    "equal number": lambda x, y: x == 2,
    "power": lambda x, y: x**2,
    "of number": lambda x, y: 2**x,
    "remainder": lambda x, y: x.remainder(2),
    "floor": lambda x, y: x // 2,
    "rounded": lambda x, y: torch.div(x, 2, rounding_mode="floor"),
    "clamp": lambda x, y: x.clamp(0, 1),
    "relu": lambda x, y: x.relu(),
    "leaky": lambda x, y: F.leaky_relu(x),
    "threshold's gradient": lambda x, y: torch.ops.aten.threshold_backward(x, y, 0.1),
    "threshold": lambda x, y: F.threshold(x, 0.1, 2.0),
    "gelu": lambda x, y: F.gelu(x),
    "lerp": lambda x, y: x.lerp(y, 0.5),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=2),
    "masked fill": lambda x, y: x.masked_fill(y > 0, 2.0),
    "where number": lambda x, y: torch.where(y > 0, x, 2.0),
    "where": lambda x, y: torch.where(y > 0, x, y),
    "sum": lambda x, y: x + y,
    "scaled sum": lambda x, y: torch.add(x, y, alpha=2),
    "maximum": lambda x, y: torch.maximum(x, y),
    "exp": lambda x, y: x.exp(),
    "and": lambda x, y: torch.logical_and(x, y),
    "host number": lambda x, y: x + torch.tensor(2.0),
    "number": lambda x, y: x * torch.tensor(2.0, device=x.device),
}
INPUTS = {
    "column": lambda device: torch.ones(1, 17, device=device).t(),
    "row": lambda device: torch.ones(17, 1, device=device).t(),
    "channels last": lambda device: torch.ones(2, 1, 3, 4, device=device).permute(0, 3, 1, 2),
    "moved": lambda device: torch.ones(1, 3, 4, device=device).permute(2, 0, 1),
    "sliced": lambda device: torch.ones(4, 6, device=device)[:, ::2],
    "expanded": lambda device: torch.ones(1, 6, device=device).expand(4, 6),
    "one element": lambda device: torch.ones(1, 1, device=device).as_strided((1, 1), (5, 7)),
    "permuted": lambda device: torch.ones(3, 2, 4, device=device).permute(2, 0, 1),
}


def geometry(op, x, y, dtype, device):
    try:
        result = op(INPUTS[x](device).to(dtype), INPUTS[y](device).to(dtype))
    except RuntimeError as error:
        return type(error)
    return result.shape, result.stride(), result.dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_strides_are_eagers(name, dtype):
    for x, y in itertools.product(INPUTS, INPUTS):
        for _ in range(2):  # the shape is asked for, then known
            assert geometry(OPS[name], x, y, dtype, "lazy") == geometry(OPS[name], x, y, dtype, "cpu"), (x, y)


WEIGHTS = {"dense": lambda ones: ones(4, 3), "transposed": lambda ones: ones(3, 4).t(), "stepped": lambda ones: ones(4, 6)[:, ::2]}
FEATURES = {"dense": lambda ones: ones(2, 3), "transposed": lambda ones: ones(3, 2).t(), "batch": lambda ones: ones(2, 3, 2).mT}


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("x", FEATURES)
def test_gradients_of_linear(x, weight):
    def strides(device):
        leaves = [make(lambda *size: torch.ones(size, device=device)).requires_grad_() for make in (FEATURES[x], WEIGHTS[weight])]
        return [grad.stride() for grad in torch.autograd.grad(F.linear(*leaves).sum(), leaves)]

    assert strides("lazy") == strides("cpu")
