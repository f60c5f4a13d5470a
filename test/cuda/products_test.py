# SPDX-License-Identifier: Apache-2.0
"""Products of 16-bit floats: with a bias they are eager CUDA's bit for bit; padded, or by another algorithm, they round like those."""

import numpy
import pytest
import torch
import torch_lazy
from torch.nn import functional as F

from devices import EAGER, in_child

LOW = [torch.bfloat16, torch.float16]
SHAPES = [(40, 64, 48), (1, 64, 48), (40, 64, 1), (40, 1, 48), (33, 65, 47), (2048, 768, 3072), (512, 2050, 1001)]
LARGE_SHAPES = [(2048, 768, 3072), (8192, 768, 2304), (3000, 1000, 520)]


def _linears(device, dtype, shapes, runs):
    """The last of some runs, with and without a bias, of the same operands of each shape."""
    values = []
    for rows, terms, columns in shapes:
        generator = torch.Generator().manual_seed(rows + terms + columns)
        x, w, b = (torch.randn(size, generator=generator).to(dtype).to(device) for size in ((rows, terms), (columns, terms), (columns,)))
        for _ in range(runs):
            results = F.linear(x * 1, w, b), F.linear(x * 1, w), torch.addmm(b, x * 1, w.t()), F.linear(x * 1, w, b).relu()
            arrays = [result.float().cpu().numpy() for result in results]  # tensors cannot outlive a child
        values += arrays
    return values


def _assert_near(mine, eager, dtype):
    digit = torch.finfo(dtype).eps
    for a, e in zip(mine, eager, strict=True):
        numpy.testing.assert_allclose(a, e, rtol=2 * digit, atol=2 * digit * abs(e).max())


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_bias_is_eagers(dtype):
    mine = in_child(_linears, "lazy", dtype, SHAPES, 4, compile="sync", disable="autotune,pad_matmuls")
    eager = _linears(EAGER, dtype, SHAPES, 1)
    for a, e in zip(mine, eager, strict=True):
        assert EAGER == "cpu" or numpy.array_equal(a, e), e.shape
    _assert_near(mine, eager, dtype)


def _tuned(dtype):
    return _linears("lazy", dtype, LARGE_SHAPES, 5), torch_lazy.metrics()["tuned_products"]


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_fastest_algorithm_is_right(dtype, tmp_path):
    eager = _linears(EAGER, dtype, LARGE_SHAPES, 1)
    for _ in range(2):  # the second knows it from the disk
        mine, counts = in_child(_tuned, dtype, compile="sync", cache_dir=str(tmp_path / "cache"))
        _assert_near(mine, eager, dtype)
        print(f"{dtype}: {counts.get('cublaslt', 0)} of {len(eager) * 5} products by an algorithm that ATen would not take")


def _relu_of_no_terms(device, dtype):
    x, w, b = torch.zeros(3, 0, dtype=dtype).to(device), torch.zeros(4, 0, dtype=dtype).to(device), torch.arange(-2.0, 2).to(dtype).to(device)
    return [F.linear(x, w, b).relu().tolist() for _ in range(4)]


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_relu_of_no_terms(dtype):
    assert in_child(_relu_of_no_terms, "lazy", dtype, compile="sync") == [[[0, 0, 0, 1]] * 3] * 4


def _relu_of_nan(device, dtype):
    counts = []
    for rows, terms, columns in LARGE_SHAPES:
        x, w, b = (torch.ones(size, dtype=dtype, device=device) for size in ((rows, terms), (columns, terms), (columns,)))
        x[3, 5], b[7] = float("nan"), -float("inf")
        for _ in range(4):
            y = F.linear(x * 1, w, b).relu()
            counts.append((y.isnan().sum().item(), (y == 0).sum().item()))
    return counts


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_relu_keeps_nan(dtype):
    expected = [(columns, rows - 1) for rows, _, columns in LARGE_SHAPES for _ in range(4)]
    assert in_child(_relu_of_nan, "lazy", dtype, compile="sync") == expected


def _trained_head(device, rows, width, words):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, words)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=10)
    losses = []
    for step in range(5):
        torch.manual_seed(step)
        x, classes = torch.randn(rows, width).to(device), torch.randint(words, (rows,)).to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu().numpy() for parameter in net.parameters()]


def test_odd_head_trains_like_eagers():
    sizes = (512, 512, 8190) if EAGER == "cpu" else (2048, 768, 30522)
    losses, parameters = in_child(_trained_head, "lazy", *sizes, compile="sync")
    expected_losses, expected = _trained_head(EAGER, *sizes)
    assert losses == pytest.approx(expected_losses, rel=1e-3)
    for a, e in zip(parameters, expected, strict=True):
        numpy.testing.assert_allclose(a, e, rtol=2e-2, atol=5e-3)
