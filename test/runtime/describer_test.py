# SPDX-License-Identifier: Apache-2.0
"""A number that is 1 by default belongs to a trace's path when it is 1; all its other values share a trace."""

import torch
import torch_lazy

from child import in_child


def _misses(alphas):
    x, y = torch.arange(6.0), torch.arange(6.0) - 2
    lazy_x, lazy_y = x.to("lazy"), y.to("lazy")
    torch_lazy.sync()
    seen = []
    for alpha in alphas:
        before = torch_lazy.metrics()["trace_misses"]
        assert torch.equal(torch.add(lazy_x, lazy_y, alpha=alpha).cpu(), torch.add(x, y, alpha=alpha)), alpha
        seen.append(torch_lazy.metrics()["trace_misses"] - before)
    return seen


def test_one_and_other_numbers():
    for mode in ("sync", "off"):
        learnt = in_child(_misses, [1, 2], compile=mode)
        assert in_child(_misses, [1, 2, 1, 3, 2, 7, 1], compile=mode) == [*learnt, 0, 0, 0, 0, 0]
