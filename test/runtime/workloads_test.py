# SPDX-License-Identifier: Apache-2.0
"""Launches, library calls and kernels of a step of each benchmark, and the most memory held, as workloads.json has them.

LAZY_UPDATE_WORKLOADS=1 rewrites the file. Convolutions run without oneDNN here, whose scratch memory depends on the processor.
"""

import importlib
import json
import os
import pathlib
import sys

import pytest
import torch
import torch_lazy

from child import in_child

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.append(str(BENCH))
from catalog import WORKLOADS  # noqa: E402

TABLE = pathlib.Path(__file__).parent / "workloads.json"
WARM_STEPS, STEPS = 3, 2
NAMES = [workload.module for workload in WORKLOADS if not workload.is_cpp]


def _counts(name):
    from workloads.variant import VARIANTS

    torch.backends.mkldnn.set_flags(not name.startswith("resnet"))
    torch.manual_seed(0)
    step = importlib.import_module(f"workloads.{name}").make(VARIANTS["lazy"])
    for index in range(WARM_STEPS):
        step(index)
        torch_lazy.sync()
    before = torch_lazy.metrics()
    for index in range(STEPS):
        held = step(WARM_STEPS + index)
        torch_lazy.sync()
        del held
    after = torch_lazy.metrics()
    counts = {key: (after[key] - before[key]) / STEPS for key in ("kernel_launches", "library_calls")}
    kernels = after["kernels_compiled"] + after["kernels_from_disk"]
    return {**counts, "kernels": kernels, "bytes_peak": after["bytes_peak"]}


@pytest.mark.parametrize("name", NAMES)
def test_counts(name):
    counts = in_child(_counts, name, compile="sync")
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if "LAZY_UPDATE_WORKLOADS" in os.environ:
        TABLE.write_text(json.dumps({**table, name: counts}, indent=1, sort_keys=True) + "\n")
        return
    assert counts == table[name]


def test_each_workload_is_in_the_table():
    assert set(json.loads(TABLE.read_text())) == set(NAMES)


def _compiled_steps(name):
    from workloads.variant import VARIANTS

    counted = {}
    for variant in "lazy", "lazy+compile":
        torch.manual_seed(0)
        step, losses = importlib.import_module(f"workloads.{name}").make(VARIANTS[variant]), []
        for index in range(12):
            before = torch_lazy.metrics()
            losses.append(step(index).item())
            after = torch_lazy.metrics()
        counted[variant] = losses, [after[key] - before[key] for key in ("traces_run", "replays", "trace_misses")]
    return counted


@pytest.mark.parametrize("name", ["mlp", "resnet", "gru"])
def test_a_compiled_step_is_one_run(name):
    """Forward pass, backward pass and update, three replays, and what the program does in between."""
    counted = in_child(_compiled_steps, name, compile="sync")
    assert counted["lazy"][1] == [1, 0, 0]
    assert counted["lazy+compile"][1] == [1, 3, 0]
    torch.testing.assert_close(counted["lazy+compile"][0], counted["lazy"][0], rtol=2e-3, atol=1e-4)
