# SPDX-License-Identifier: Apache-2.0
"""A GPU's kernels are made for rows of the lengths seen first: others get kernels of their own, where there is much to do."""

import time

import faults  # before torch_lazy
import pytest
import torch
import torch_lazy

from child import in_child

FIRST = (512, 2048)


def _softmax(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    lazy_x = x.to("lazy")
    torch_lazy.sync()
    y = torch.softmax(lazy_x, -1)
    torch_lazy.sync()
    torch.testing.assert_close(y.cpu(), torch.softmax(x, -1))


def _kernels(shapes):
    """How many kernels each of the shapes takes that were not there."""
    made = []
    _softmax(FIRST)  # its shape is learnt
    for shape in shapes:
        before = torch_lazy.metrics()["kernels_compiled"] + torch_lazy.metrics()["kernels_from_disk"]
        _softmax(shape)
        made.append(torch_lazy.metrics()["kernels_compiled"] + torch_lazy.metrics()["kernels_from_disk"] - before)
    return made


@pytest.mark.parametrize("shape, is_made", [((64, 16384), 1), ((16384, 64), 1), ((1024, 1024), 0), ((16, 16384), 0)],
                         ids=["longer", "shorter", "alike", "few"])
def test_a_kernel_of_their_own(shape, is_made):
    assert in_child(_kernels, [FIRST, shape, FIRST, shape], compile="sync", backend="stand_in") == [1, is_made, 0, 0]


def test_each_its_own():
    longer, shorter = (64, 16384), (16384, 64)
    assert in_child(_kernels, [FIRST, longer, shorter, longer, shorter, FIRST], compile="sync", backend="stand_in") == [1, 1, 1, 0, 0, 0]


def test_they_can_do_without():
    shapes = [FIRST, (64, 16384), FIRST, (64, 16384)]
    assert in_child(_kernels, shapes, compile="sync", backend="stand_in", disable="sized") == [1, 0, 0, 0]


def _effort(shapes):
    for shape in shapes:
        _softmax(shape)
    return torch_lazy.metrics()["efforts"]["sized"]


def test_the_effort_is_told():
    effort = in_child(_effort, [FIRST, FIRST, (64, 16384), (64, 16384), (64, 16384)], compile="sync", backend="stand_in")
    assert effort["tried"] == 1 and effort["used"] == 3 and effort["seconds_spent"] > 0


def _without_a_kernel():
    _softmax(FIRST)
    _softmax(FIRST)
    faults.spoil_kernels(1, 0)
    before = torch_lazy.metrics()
    for _ in range(3):
        _softmax((64, 16384))
    return [torch_lazy.metrics()[name] - before[name] for name in ("kernels_failed", "traces_interpreted", "calls_recorded")]


def test_where_theirs_fails_the_one_that_is_there_does_them(tmp_path):
    assert in_child(_without_a_kernel, compile="sync", backend="stand_in", cache_dir=str(tmp_path)) == [1, 0, 0]


def _interpreted(shape):
    before = torch_lazy.metrics()["traces_interpreted"]
    _softmax(shape)
    return torch_lazy.metrics()["traces_interpreted"] - before


def _runs_meanwhile():
    deadline = time.monotonic() + 60
    while _interpreted(FIRST) > 0:
        assert time.monotonic() < deadline, "no kernel came"
        time.sleep(0.02)
    return [_interpreted((64, 16384)) for _ in range(4)]


def test_nobody_waits():
    """The kernel that is there does other rows until theirs is."""
    assert in_child(_runs_meanwhile, compile="async", backend="stand_in") == [0, 0, 0, 0]
