# SPDX-License-Identifier: Apache-2.0
"""Integer indices on the host are moved to the device: a step that shuffles its rows there is one trace."""

import pytest
import torch
import torch_lazy

from child import in_child

STEPS = 12


def _steps(device, read):
    """A loop over minibatches whose order is drawn on the host, as torch.randperm draws it."""
    torch.manual_seed(0)
    rows, weight = torch.randn(16, 4).to(device), torch.randn(4, 3).to(device).requires_grad_()
    totals = torch.zeros(16, 3, device=device)
    values = []
    for _ in range(STEPS):
        order = torch.randperm(16)
        picked = order[:8]
        predicted = rows[picked] @ weight
        loss = (predicted - rows[picked, None, 1]).square().mean()
        loss.backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            totals[picked] = predicted
            totals.index_put_((order[8:].int(), torch.tensor(1, device=device)), loss, accumulate=True)
            order.zero_()  # what was recorded does not see it
        weight.grad = None
        if read:
            values.append(loss.item())
    return torch.tensor(values), weight.detach().cpu(), totals.cpu()


def _compare(read):
    before = torch_lazy.metrics()
    ours = _steps("lazy", read)
    after = torch_lazy.metrics()
    theirs = _steps("cpu", read)
    torch.testing.assert_close(ours, theirs)
    return after["cuts"].get("immediate", 0) - before["cuts"].get("immediate", 0)


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("backend", ["cpu", "stand_in"])
def test_steps_are_not_cut(backend, read):
    assert in_child(_compare, read, backend=backend, compile="sync") == 0


def _out_of_range():
    rows = torch.ones(3, 2, device="lazy")
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        rows[torch.tensor([0, 5])].sum().item()
    assert rows[torch.tensor([0, -1])].sum().item() == 4


def test_an_index_out_of_range_is_refused():
    in_child(_out_of_range)


def _replayed():
    rows = torch.arange(8.0, device="lazy")
    pick = torch.tensor([1, 2])
    call = torch_lazy.make_replayable(lambda x: x[pick] * 2)
    values = []
    for turn in range(6):
        pick.fill_(turn)
        values.append(call(rows).tolist())
    return values


def test_a_function_for_replay_sees_each_new_index():
    assert in_child(_replayed) == [[2.0 * turn] * 2 for turn in range(6)]
