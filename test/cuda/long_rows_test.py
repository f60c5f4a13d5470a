# SPDX-License-Identifier: Apache-2.0
"""Long rows, many of them: those as long as the first have a kernel of their own, up to 16 such arrays in one trace a launch."""

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


def _launches(lengths, arrays=1):
    """Of so many arrays of each length, whose values are eager's."""
    generator, launches = torch.Generator().manual_seed(0), []
    for length in lengths:
        given = [torch.randn(COUNT, length, generator=generator) for _ in range(arrays)]
        weight = torch.randn(length, generator=generator)
        results = {}
        for device in (EAGER, "lazy"):
            xs = [x.to(device) for x in given]
            weight = weight.to(device)
            for _ in range(2):  # shapes are learned, and then compiled
                before = torch_lazy.metrics()["kernel_launches"]
                results[device] = [_normed(x, weight) for x in xs]
                torch_lazy.sync()
        launches.append(torch_lazy.metrics()["kernel_launches"] - before)
        for mine, eager in zip(results["lazy"], results[EAGER], strict=True):
            torch.testing.assert_close(mine.cpu(), eager.cpu(), rtol=1e-5, atol=1e-8)
    return launches


@pytest.mark.parametrize("length", [4096, 8192])
def test_rows_of_the_first_length_and_others(length):
    """The others by the first's kernels: shorter ones, those without whole vectors, and longer ones."""
    assert _launches([length, length, length - 4, length - 1, length + 8]) == [1] * 5


@pytest.mark.parametrize("arrays, launches", [(3, 1), (17, 2)])
def test_arrays_share_launches(arrays, launches):
    assert _launches([4096, 4096], arrays=arrays) == [launches] * 2
