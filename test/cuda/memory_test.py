# SPDX-License-Identifier: Apache-2.0
"""The most memory that the programs of test/programs and larger ones take at a time: at most 1.05 times eager CUDA's."""

import importlib

import pytest
import torch
import torch_lazy  # noqa: F401

from devices import EAGER, Child, wait_for

PROGRAMS = ["mlp", "resnet", "gpt", "gru", "lstm", "dropout", "branch"]
WORKLOADS = ["mlp", "gpt", "resnet"]  # of bench/workloads
STEPS = 12
MOST = 1.05


def _peak():
    """Bytes. Tried on the CPU there is no count of eager's, and the test fails."""
    return torch.cuda.max_memory_allocated()


def _of_program(name, device):
    from programs import Options

    importlib.import_module(name).train(Options(device=device, steps=STEPS))
    wait_for(device)
    return _peak()


def _of_workload(name, device):
    from workloads.variant import Variant

    step = importlib.import_module(f"workloads.{name}").make(Variant(device=device))
    for index in range(STEPS):
        step(index)
    wait_for(device)
    return _peak()


def _live_bytes(device):
    """After 20 steps and after 60."""
    from workloads.variant import Variant

    step = importlib.import_module("workloads.mlp").make(Variant(device=device))
    seen = []
    for index in range(60):
        step(index)
        if index in (19, 59):
            wait_for(device)
            seen.append(torch.cuda.memory_allocated())
    return seen


@pytest.mark.parametrize("disable", ["", "graphs"], ids=["graphs", "launches"])
@pytest.mark.parametrize("measure, name", [(_of_program, name) for name in PROGRAMS] + [(_of_workload, name) for name in WORKLOADS],
                         ids=lambda value: value if isinstance(value, str) else value.__name__.strip("_"))
def test_no_more_than_eager(measure, name, disable):
    children = [Child(measure, name, EAGER), Child(measure, name, "lazy", compile="sync", disable=disable)]
    eager, lazy = (child.result() for child in children)
    print(f"\npeak {measure.__name__} {name} {disable}: eager {eager / 2**20:.1f} MiB, lazy {lazy / 2**20:.1f} ({lazy / max(eager, 1):.3f})")
    assert 0 < lazy <= MOST * eager


def test_no_growth():
    early, late = Child(_live_bytes, "lazy", compile="sync").result()
    assert 0 < late <= early
