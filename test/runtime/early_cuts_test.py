# SPDX-License-Identifier: Apache-2.0
"""Loops that read a value at each step: on a GPU, their steps begin while they are recorded. Note [Early cuts] in lazy/cuts/early_cuts.h."""

import os

os.environ["LAZY_BACKEND"] = "stand_in"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402
from torch import nn  # noqa: E402

from child import in_child  # noqa: E402

LAYERS, ROWS, WIDTH = 36, 4, 8
LARGE = 1 << 26  # 256 MiB of float32: the step is large


def _traces_run():
    return torch_lazy.metrics()["traces_run"]


def trains(steps, reads, layers=LAYERS):
    """(losses that were read; traces that ran in each step: before its backward pass, before the read at its end, and in all)"""
    weights = [nn.Parameter(torch.full((WIDTH,), 1 + 0.01 * k, device="lazy")) for k in range(layers)]
    optimizer = torch.optim.SGD(weights, lr=1e-3, momentum=0.9)
    inputs = [torch.full((ROWS, WIDTH), 0.1 * (k + 1), device="lazy") for k in range(2)]
    one = torch.ones(1, device="lazy")
    losses, counts = [], []
    for step in range(steps):
        before = _traces_run()
        one.expand(LARGE).neg()
        optimizer.zero_grad()
        x = inputs[step % 2]
        for weight in weights:
            x = torch.tanh(x * weight)
        loss = x.square().mean()
        if reads == "before backward":
            losses.append(loss.item())
        forward = _traces_run() - before
        loss.backward()
        optimizer.step()
        recorded = _traces_run() - before
        if reads == "after the step" or (reads == "every fourth" and step % 4 == 3):
            losses.append(loss.item())
        counts.append((forward, recorded, _traces_run() - before))
    return losses, counts


@pytest.mark.parametrize("reads", ["after the step", "before backward"])
def test_a_step_begins_while_it_is_recorded(reads):
    losses, counts = in_child(trains, 12, reads, compile="off")
    assert losses == in_child(trains, 12, reads, compile="off", disable="early")[0]
    forward, recorded, traces = counts[-1]
    assert counts[-4:] == [counts[-1]] * 4
    assert 1 <= forward < recorded and 4 <= traces <= 6
    if reads == "after the step":
        assert recorded == traces - 1


@pytest.mark.parametrize("reads, layers", [("never", LAYERS), ("every fourth", LAYERS), ("after the step", 8)])
def test_others_stay_whole(reads, layers):
    losses, counts = in_child(trains, 12, reads, layers, compile="off")
    assert (losses, counts) == in_child(trains, 12, reads, layers, compile="off", disable="early")
    assert sum(traces for _, _, traces in counts[4:]) <= 8 + 1


def _replays(steps):
    """Of each step. Products, so that a part has launches enough for a CUDA graph."""
    torch.manual_seed(0)
    layers = [part for _ in range(30) for part in (nn.Linear(32, 32, bias=False), nn.LayerNorm(32), nn.Tanh())]
    net = nn.Sequential(nn.Linear(32, 32), *layers).to("lazy")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    x = torch.randn(64, 32).to("lazy")
    one = torch.ones(1, device="lazy")
    losses, replays = [], []
    for _ in range(steps):
        before = torch_lazy.metrics()["graph_replays"]
        one.expand(LARGE).neg()
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        replays.append(torch_lazy.metrics()["graph_replays"] - before)
    return losses, replays


# What a part leaves lies where its CUDA graph has put it, and the next part's reads it there.
def test_parts_have_cuda_graphs_at_once():
    losses, replays = in_child(_replays, 7, compile="sync")
    assert replays == [0, 0, 0, 0, 0, 4, 4]
    whole, _ = in_child(_replays, 7, compile="sync", disable="early")
    assert losses == pytest.approx(whole, rel=1e-5)
