# SPDX-License-Identifier: Apache-2.0
"""Graphs of Dynamo's whose sizes are no numbers: torch.compile(backend="lazy") of what models do by their sizes."""
import pytest
import torch
import torch_lazy  # noqa: F401
from torch.nn.functional import dropout, pad, scaled_dot_product_attention


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def padded(x):  # as attention on CUDA pads its masks
    return pad(x, (0, 16 - x.shape[1] % 16)) * 2


def joined(x):
    return torch.cat([x, x.new_zeros(x.shape[0], 3), x[:, : x.shape[1] // 2]], 1).cumsum(1)


def attended(x):
    length = x.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    q = x[:, None, :, None].expand(-1, 2, -1, 8)
    return scaled_dot_product_attention(q, q * 0.5, q, mask[None, None].expand(x.shape[0], 1, length, length))


def cached(x):  # a row of an older cache, written in place
    cache = torch.zeros(x.shape[0], 32, device=x.device)
    cache.index_copy_(1, torch.arange(x.shape[1], device=x.device), x)
    return cache[:, : x.shape[1] + 1] + 1


FUNCTIONS = [padded, joined, attended, cached]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dynamic", [True, None, "marked"])
def test_sizes_that_change(function, dynamic):
    compiled = torch.compile(function, backend="lazy", dynamic=None if dynamic == "marked" else dynamic)
    for length in (5, 7, 12, 7, 20, 16):
        x = torch.arange(2.0 * length).reshape(2, length).to("lazy")
        if dynamic == "marked":
            torch._dynamo.mark_dynamic(x, 1)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_gradients_of_sizes_that_change(function):
    compiled = torch.compile(function, backend="lazy", dynamic=True)
    for length in (5, 7, 12, 7):
        gradients = []
        for called in (compiled, function):
            x = torch.linspace(0, 1, 2 * length).reshape(2, length).to("lazy").requires_grad_()
            called(x).square().sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dynamic", [True, "marked"])
def test_dropout_of_sizes_that_change(dynamic):
    compiled = torch.compile(lambda x: dropout(x, 0.5, training=True), backend="lazy", dynamic=dynamic is True or None)
    for length in (5, 7, 12, 7, 32):
        x = torch.arange(1.0, 2 * length + 1).reshape(2, length).to("lazy").requires_grad_()
        if dynamic == "marked":
            torch._dynamo.mark_dynamic(x, 1)
        y = compiled(x)
        y.sum().backward()
        assert torch.equal(y, x * x.grad) and set(x.grad.flatten().tolist()) == {0.0, 2.0}
