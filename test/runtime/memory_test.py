# SPDX-License-Identifier: Apache-2.0
"""Tensors take no more memory at a time than eager's, measured with the same pool around both, and do not grow over time."""

import ctypes
import importlib
import os
import pathlib
import sys

import pytest
import torch
import torch_lazy

from child import in_child
from loops import network, update

sys.path.append(str(pathlib.Path(__file__).parent.parent / "programs"))
from programs import Options  # noqa: E402

POOL = pathlib.Path(os.environ["LAZY_BUILD_DIR"]) / "lib" / "liballocations.so"
PROGRAMS = ["mlp", "resnet", "gpt", "gru", "lstm", "dropout", "branch"]


def _peak(program, device):
    pool = ctypes.CDLL(str(POOL)) if device == "cpu" else None  # before the first tensor
    if program == "resnet":  # the scratch memory of oneDNN's convolutions depends on the processor
        torch.backends.mkldnn.set_flags(False)
    importlib.import_module(program).train(Options(device=device, steps=5))
    if pool is None:
        return torch_lazy.metrics()["bytes_peak"]
    pool.peak_bytes.restype = ctypes.c_int64
    return pool.peak_bytes()


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_more_than_eager(program):
    eager = in_child(_peak, program, "cpu")
    assert 0 < in_child(_peak, program, "lazy", compile="off") <= eager
    assert 0 < in_child(_peak, program, "lazy", compile="sync") <= eager


def _peaks_and_live_bytes(steps):
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    seen = []
    for step in range(steps):
        update(net, optimizer, torch.full((16, 8), 0.1 * (step % 5), device="lazy"))
        if step in (20, steps - 1):
            torch_lazy.sync()
            seen.append((torch_lazy.metrics()["bytes_peak"], torch_lazy.metrics()["bytes_live"]))
    return seen


@pytest.mark.parametrize("mode", ["off", "sync"])
def test_steps_that_nobody_waits_for_leave_nothing(mode):
    early, late = in_child(_peaks_and_live_bytes, 500, compile=mode)
    assert late == early
