# SPDX-License-Identifier: Apache-2.0
"""Known traces are forgotten when there are too many, and nothing else changes."""

import torch
import torch_lazy

from child import in_child
from loops import network, update


def _calls_of_many_kinds(count):
    """Traces that never come twice."""
    for k in range(count):
        x = torch.arange(3.0 + k % 11, device="lazy")
        for bit in range(8):
            x = (x * 2.0 if k >> bit & 1 else x.sin()).cos()
        yield x.sum().item()


def _results(count):
    return list(_calls_of_many_kinds(count))


def test_results_are_the_same():
    kept = in_child(_results, 300, compile="off", disable="at_once")
    assert in_child(_results, 300, compile="off", disable="at_once", max_known_ops="50") == kept


def _train(steps):
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses, kernels = [], []
    for step in range(steps):
        losses.append(update(net, optimizer, torch.full((16, 8), 0.1 * (step % 5), device="lazy")).item())
        kernels.append(torch_lazy.metrics()["kernels_compiled"] + torch_lazy.metrics()["kernels_from_disk"])
    return losses, kernels


def test_kernels_are_kept():
    losses, kernels = in_child(_train, 20, compile="sync")
    again, more = in_child(_train, 20, compile="sync", max_known_ops="10")  # less than a step has
    torch.testing.assert_close(again, losses, rtol=1e-5, atol=0)  # the steps' pieces are summed otherwise
    assert more[-1] == more[3] <= kernels[-1] + 8  # shapes are learned again, and the steps' pieces are other traces


def _replay(calls):
    weight = torch.full((8,), 0.5, device="lazy")
    function = torch_lazy.make_replayable(lambda x: (x * weight).sin())
    results = []
    for k in range(calls):
        results.append(function(torch.full((8,), 0.1 * k, device="lazy")).sum().item())
        list(_calls_of_many_kinds(3 * (k % 3)))
    return results, torch_lazy.metrics()["replays"]


def test_replays_go_on():
    results, replays = in_child(_replay, 30, compile="off", disable="at_once")
    again, as_many = in_child(_replay, 30, compile="off", disable="at_once", max_known_ops="100")
    assert again == results
    assert as_many == replays == 28
