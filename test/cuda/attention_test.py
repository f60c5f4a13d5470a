# SPDX-License-Identifier: Apache-2.0
"""Attention of a few queries is one kernel of ours: as exact as eager's, over keys where they lie."""

import math

import pytest
import torch
import torch_lazy
from torch.nn import functional as F

from devices import EAGER

# Batch, heads, queries, keys, width, and how many heads share one of keys.
SHAPES = [(1, 32, 1, 144, 64, 4), (1, 32, 1, 17, 64, 1), (2, 8, 3, 100, 128, 1), (4, 12, 1, 1000, 64, 1), (1, 4, 1, 5000, 128, 2),
          (1, 4, 1, 33, 96, 1), (1, 4, 8, 50, 80, 1), (1, 2, 1, 1, 64, 1), (2, 4, 1, 77, 256, 1), (1, 4, 2, 60, 40, 1),
          (2, 8, 2, 60, 64, 4), (1, 8, 1, 70, 128, 8)]


@pytest.fixture(autouse=True)
def _compiled():
    torch_lazy.set_option("compile", "sync")


def _mask(kind, batch, queries, keys, dtype):
    """Of each query: two thirds of the keys, or random numbers that are added; of one query nothing."""
    if kind == "truth":
        return (torch.arange(keys) < max(1, keys * 2 // 3))[None, None, None].expand(batch, 1, queries, keys)
    if kind == "numbers":
        return torch.randn(batch, 1, queries, keys, dtype=dtype)
    if kind == "nothing":
        mask = torch.zeros(batch, 1, queries, keys, dtype=dtype)
        mask[:, :, 0] = -math.inf
        return mask
    return None


def _attend(query, key, value, mask, shared, copies=True):
    if shared > 1 and not copies:
        return F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
    if shared > 1:  # as models do
        key, value = (x[:, :, None].expand(-1, -1, shared, -1, -1).reshape(query.size(0), query.size(1), *x.shape[2:]) for x in (key, value))
    return F.scaled_dot_product_attention(query, key, value, mask)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", [None, "truth", "numbers", "nothing"])
@pytest.mark.parametrize("shape, copies", [(shape, True) for shape in SHAPES] + [(shape, False) for shape in SHAPES if shape[5] > 1], ids=str)
def test_is_as_exact_as_eagers(shape, copies, kind, dtype):
    batch, heads, queries, keys, width, shared = shape
    torch.manual_seed(0)
    query = torch.randn(batch, heads, queries, width, dtype=dtype)
    key, value = (torch.randn(batch, heads // shared, keys, width, dtype=dtype) for _ in range(2))
    mask = _mask(kind, batch, queries, keys, dtype)
    given = (query, key, value, mask)
    wide = [x if x is None or x.dtype == torch.bool else x.double() for x in given]
    exact = _attend(*wide, shared, copies)
    eager = _attend(*(None if x is None else x.to(EAGER) for x in given), shared, copies).cpu()
    mine = [None if x is None else x.to("lazy") for x in given]
    for _ in range(3):  # shapes are learned, and then compiled
        before = torch_lazy.metrics()["calls_compiled"]
        result = _attend(*mine, shared, copies).cpu()
    if queries == 1:
        assert torch_lazy.metrics()["calls_compiled"] > before
    digit = torch.finfo(dtype).eps
    worst = (eager.double() - exact).abs().max().item()
    torch.testing.assert_close(result.double(), exact, rtol=digit, atol=max(1.2 * worst, digit))


def test_a_backward_pass_is_eagers():
    """What autograd keeps is ATen's, forward and backward."""
    torch.manual_seed(0)
    given = [torch.randn(2, 4, 3, 64, dtype=torch.bfloat16) for _ in range(3)]
    gradients = {}
    for device in (EAGER, "lazy"):
        leaves = [x.to(device).requires_grad_() for x in given]
        for _ in range(3):
            gradients[device] = torch.autograd.grad(F.scaled_dot_product_attention(*leaves).float().square().sum(), leaves)
        gradients[device] = [gradient.cpu() for gradient in gradients[device]]
    for mine, eager in zip(gradients["lazy"], gradients[EAGER], strict=True):
        torch.testing.assert_close(mine, eager, rtol=0, atol=0)


@torch.no_grad()
def test_sums_of_scores_are_right_for_who_asks():
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 4, n, 64, dtype=torch.bfloat16) for n in (1, 20, 20))
    exact = torch.logsumexp(query.double() @ key.double().mT / 8, -1)
    for _ in range(3):
        sums = torch.ops.aten._scaled_dot_product_fused_attention_overrideable(*(x.to("lazy") for x in (query, key, value)))[1]
        sums = sums.cpu()
    torch.testing.assert_close(sums.view_as(exact).double(), exact, rtol=1e-5, atol=1e-5)
