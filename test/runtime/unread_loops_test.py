# SPDX-License-Identifier: Apache-2.0
"""Loops that nobody reads: their steps end where the program's own do, so that traces after a wait are known ones."""

import pytest
import torch
import torch_lazy

from child import in_child

BLOCK = 12


def _counts():
    metrics = torch_lazy.metrics()
    return metrics["traces_run"], metrics["trace_misses"]


def _adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, foreach=False)


def trains(rows):
    """(traces that ran, and unknown ones) of three blocks of steps, a wait behind each. `rows`: of the batches, in turn."""
    net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()) for _ in range(4)]).to("lazy")
    optimizer = _adam(net.parameters())
    batches = [torch.ones(count, 8) for count in rows]
    blocks = []
    for _ in range(3):
        before = _counts()
        for step in range(BLOCK):
            loss = net(batches[step % len(batches)].to("lazy")).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.accelerator.synchronize()
        blocks.append(tuple(now - then for now, then in zip(_counts(), before)))
    return blocks


@pytest.mark.parametrize("rows", [[4], [4, 5, 6, 7]])
def test_steps_after_a_wait_are_known(rows):
    """But for the end of a block, which hands nothing over."""
    _, second, third = in_child(trains, rows, compile="sync")
    assert second[0] == third[0] == BLOCK and second[1] <= 1 and third[1] == 0


def updates():
    """The same of an optimizer alone, whose gradients alternate."""
    parameters = [torch.nn.Parameter(torch.ones(8, device="lazy")) for _ in range(16)]
    gradients = [[torch.full((8,), value, device="lazy") for _ in parameters] for value in (0.5, 0.25)]
    optimizer = _adam(parameters)
    blocks = []
    for _ in range(3):
        before = _counts()
        for step in range(BLOCK):
            for parameter, gradient in zip(parameters, gradients[step % 2]):
                parameter.grad = gradient
            optimizer.step()
        torch.accelerator.synchronize()
        blocks.append(tuple(now - then for now, then in zip(_counts(), before)))
    return blocks


def test_updates_alone_end_where_they_were_found():
    _, second, third = in_child(updates, compile="sync")
    assert second == third == (BLOCK // 2, 0)  # two steps a trace, one for each list of gradients
