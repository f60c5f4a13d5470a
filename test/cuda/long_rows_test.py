# SPDX-License-Identifier: Apache-2.0
"""Long rows, many of them: those as long as the first have a kernel of their own, several such arrays in one trace a launch each."""

import pytest
import torch
import torch_lazy
from torch.nn import functional as F

from devices import EAGER

COUNT = 1100  # blocks do several rows each


@pytest.fixture(autouse=True)
def _compiled():
    torch_lazy.set_option("compile", "sync")


def _normed(x, weight):
    return torch.softmax(F.layer_norm(x, weight.shape, weight), -1)


def _check(lengths, offset=0, arrays=1):
    generator = torch.Generator().manual_seed(0)
    for length in lengths:
        given = [torch.randn(COUNT * length + offset, generator=generator) for _ in range(arrays)]
        weight = torch.randn(length, generator=generator)
        results = {}
        for device in (EAGER, "lazy"):
            xs = [x.to(device)[offset:].view(COUNT, length) for x in given]
            for _ in range(2):
                results[device] = [_normed(x, weight.to(device)) for x in xs]
        launches = torch_lazy.metrics()["kernel_launches"]
        for mine, eager in zip(results["lazy"], results[EAGER], strict=True):
            torch.testing.assert_close(mine.cpu(), eager.cpu(), rtol=1e-5, atol=1e-8)
        yield torch_lazy.metrics()["kernel_launches"] - launches


@pytest.mark.parametrize("length", [4096, 8192])
def test_rows_of_the_first_length_and_others(length):
    """The others by the first's kernels: shorter ones, those without whole vectors, and longer ones."""
    assert all(_check([length, length, length - 4, length - 1, length + 8]))


def test_rows_that_are_not_aligned():
    assert all(_check([4096, 4096], offset=1))


def test_each_array_is_a_launch():
    first, second = _check([4096, 4096], arrays=3)
    assert second >= 3
