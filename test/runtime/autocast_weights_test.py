# SPDX-License-Identifier: Apache-2.0
"""Steps under autocast leave their narrow weights to the next step, only while nobody else writes the weights (lazy/variants/autocast_weights_plan).

Results are those without, to the last bit: backend stand_in runs the kernels that CUDA would.
"""

import functools
import itertools
import os

os.environ["LAZY_BACKEND"] = "stand_in"

import faults  # noqa: E402  (before torch_lazy)
import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402
from torch import nn  # noqa: E402

from child import in_child  # noqa: E402

STEPS = 14
ROWS = 128  # so that activations are the most of what lies in memory
FIRST = 3  # the first step that takes values from the one before: the first learns shapes, two have followed the next
VALUES = 4  # weights and biases of two linear layers


class Loop:
    """Training, and the values that its steps have taken over, one by one."""

    def __init__(self, seed=0, rows=ROWS, hidden=32):
        torch.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(16, hidden), nn.GELU(), nn.LayerNorm(hidden), nn.Linear(hidden, 16)).to("lazy")
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=0.01)
        self.x, self.y = torch.randn(rows, 16).to("lazy"), torch.randn(rows, 16).to("lazy")
        self.losses, self.carried = [], []

    def loss(self):
        with torch.autocast("lazy", dtype=torch.bfloat16):
            return nn.functional.mse_loss(self.net(self.x).float(), self.y)

    def step(self):
        torch_lazy.reset_metrics()
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        self.carried.append(torch_lazy.metrics()["values_carried"])


def _train(between=None, **sizes):
    loop = Loop(**sizes)
    for step in range(STEPS):
        loop.step()
        if between is not None:
            between(loop, step)
    return loop.losses, loop.carried


def _compare(program, between=None, **sizes):
    """What the steps carried, where it changes no loss."""
    program = functools.partial(program, between, **sizes)
    losses, carried = in_child(program, compile="sync")
    expected, none = in_child(program, compile="sync", disable="carry")
    assert losses == expected and not any(none)
    return carried


def test_weights_that_nobody_else_writes():
    assert _compare(_train) == [0] * FIRST + [VALUES] * (STEPS - FIRST)


def _efforts():
    """Of each step."""
    loop, efforts = Loop(), []
    for _ in range(STEPS):
        loop.step()
        efforts.append(torch_lazy.metrics()["efforts"]["carry"])
    return efforts


def test_the_effort_is_told():
    efforts = in_child(_efforts, compile="sync")
    assert [effort["tried"] for effort in efforts] == [step == FIRST for step in range(STEPS)]
    assert [effort["used"] for effort in efforts] == [0] * FIRST + [1] * (STEPS - FIRST)
    assert [effort["seconds_spent"] > 0 for effort in efforts] == [step == FIRST for step in range(STEPS)]


def _evaluate(loop, step):
    with torch.no_grad():
        loop.losses.append(loop.loss().item())


def test_who_reads_them_changes_nothing():
    assert _compare(_train, _evaluate) == [0] * FIRST + [VALUES] * (STEPS - FIRST)


def _halve(loop, step):
    if step == 6:
        with torch.no_grad():
            loop.net[0].weight.mul_(0.5)


def _load(loop, step):
    if step == 6:
        loop.net.load_state_dict({name: value.cpu() * 0.5 for name, value in loop.net.state_dict().items()})


def _replace(loop, step):
    if step == 6:
        loop.net[0].weight.data = loop.net[0].weight.data * 0.5


@pytest.mark.parametrize(("write", "joins"), [(_halve, True), (_load, False), (_replace, True)])  # the next step's trace
def test_who_writes_them_ends_it_for_a_while(write, joins):
    until_four_have_followed = [0] * (joins + 4)
    assert _compare(_train, write) == ([0] * FIRST + [VALUES] * 4 + until_four_have_followed + [VALUES] * 3)[:STEPS]


def _spoil(loop, step):
    if step == FIRST - 1:  # the next kernel is of the step that carries
        faults.spoil_kernels(1, 0)
    if step == STEPS - 1:
        loop.carried.append("kernel failed, so its calls" in torch_lazy.explain())


def test_without_a_kernel_for_it_there_is_none(tmp_path):
    losses, carried = in_child(functools.partial(_train, _spoil), compile="sync", cache_dir=str(tmp_path))
    assert carried == [0] * STEPS + [True]
    assert losses == in_child(_train, compile="sync", disable="carry")[0]


def _look(loop, step):
    if step == 6:
        loop.net[0].weight.data_ptr()


def test_who_has_an_address_may_write_at_any_time():
    assert _compare(_train, _look) == [0] * FIRST + [VALUES] * 4 + [0] * 7


def _two_in_turn(_):
    loops = [Loop(seed) for seed in range(2)]
    for _ in range(STEPS):
        for loop in loops:
            loop.step()
    return [loop.losses for loop in loops], loops[0].carried + loops[1].carried


def test_two_models_in_turn():
    assert not any(_compare(_two_in_turn))


def _sizes_in_turn(_):
    loop = Loop()
    for step in range(STEPS):
        rows = ROWS - 8 * (step % 2)
        loop.x, loop.y = torch.ones(rows, 16, device="lazy"), torch.zeros(rows, 16, device="lazy")
        loop.step()
    return loop.losses, loop.carried


def test_steps_of_two_sizes_in_turn():
    assert not any(_compare(_sizes_in_turn))


def _sizes_one_after_the_other(_, sizes=(ROWS, ROWS // 2)):
    loop = Loop()
    for rows in sizes:
        loop.x, loop.y = torch.ones(rows, 16, device="lazy"), torch.zeros(rows, 16, device="lazy")
        for _ in range(6):
            loop.step()
    return loop.losses, loop.carried


def _bytes_live_after(sizes):
    kept = _sizes_one_after_the_other(None, sizes)  # noqa: F841
    return torch_lazy.metrics()["bytes_live"]


def test_of_two_sizes_the_last_one_carries():
    carried = _compare(_sizes_one_after_the_other)
    assert carried[5] == VALUES and carried[-1] == VALUES
    live = in_child(_bytes_live_after, (ROWS, ROWS // 2), compile="sync", disable="graphs")
    assert live == in_child(_bytes_live_after, (ROWS // 2, ROWS // 2), compile="sync", disable="graphs")


def _two_types(_):
    torch.manual_seed(0)
    weight = torch.randn(16, 16).to("lazy").requires_grad_()
    optimizer, x = torch.optim.SGD([weight], lr=0.1), torch.randn(ROWS, 16).to("lazy")
    losses, carried = [], []
    for _ in range(7):
        torch_lazy.reset_metrics()
        optimizer.zero_grad()
        sums = [(x.to(dtype) @ weight.to(dtype)).float() for dtype in (torch.float16, torch.bfloat16)]
        loss = (sums[0].tanh() + sums[1].tanh()).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        carried.append(torch_lazy.metrics()["values_carried"])
    return losses, carried


def test_a_weight_in_two_narrow_types():
    assert _compare(_two_types)[-1] == 2


def _fails_as_it_begins():
    """One fault at each place of the step that takes its first values from the one before."""
    raised = 0
    _train()  # compiles
    expected, _ = _train()
    for place in itertools.count():
        loop = Loop()
        for _ in range(FIRST):
            loop.step()
        faults.fail_after(place)
        try:
            loop.step()
        except RuntimeError:
            raised += 1
        is_done = faults.fault_pending()
        faults.fail_after(-1)
        if len(loop.losses) > FIRST:
            loop.step()
        assert loop.losses == pytest.approx(expected[: len(loop.losses)], rel=1e-4)  # interpreted where a call fails
        torch_lazy.sync()
        if is_done:
            return place, raised


def test_faults_as_it_begins():
    places, raised = in_child(_fails_as_it_begins, compile="sync", disable="graphs")
    assert 0 < raised < places  # what makes the first values may fail, and the step goes on without


def test_no_more_memory_than_a_twentieth():
    assert not any(_compare(_train, rows=16))


def test_not_what_products_want_between_zeros():
    assert _compare(_train, hidden=30)[-1] == 1  # the last bias


def _convolve(_):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.Flatten())
    net = net.to(memory_format=torch.channels_last).to("lazy")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(64, 8, 8, 8).to(memory_format=torch.channels_last).to("lazy")
    losses, carried = [], []
    for _ in range(6):
        torch_lazy.reset_metrics()
        optimizer.zero_grad()
        with torch.autocast("lazy", dtype=torch.bfloat16):
            loss = net(x).float().square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        carried.append(torch_lazy.metrics()["values_carried"])
    return losses, carried


def test_weights_of_convolutions_that_lie_in_another_order():
    assert _compare(_convolve)[-1] == 3


def _fails(loop, step):
    if step == 6:
        with pytest.raises(IndexError):
            torch.ones(3, device="lazy")[torch.tensor([5], device="lazy")].sum().item()


def test_a_call_that_fails_between_steps():
    assert _compare(_train, _fails) == [0] * FIRST + [VALUES] * (STEPS - FIRST)
