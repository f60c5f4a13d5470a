# SPDX-License-Identifier: Apache-2.0
"""Loops that only compute and collect: on a GPU, large steps begin before somebody waits. Note [Pure steps] in lazy/trace/step_detector.h."""

import os

os.environ["LAZY_BACKEND"] = "stand_in"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402

from child import in_child  # noqa: E402

STEPS, LARGE = 8, 1 << 24  # 64 MiB of float32


def chain(x, y):
    t = x + y  # these die after the step's last call, before the next step's first
    u = t * x
    return (u - y).abs()


def collects(size):
    inputs = [torch.full((size,), float(k), device="lazy") for k in range(3)]
    held = []
    for step in range(STEPS):
        held.append(chain(inputs[step % 3], inputs[(step + 1) % 3]))
        yield
    assert [float(y[-1]) for y in held] == [float(chain(torch.tensor(k % 3.0), torch.tensor((k + 1) % 3.0))) for k in range(STEPS)]


def collects_large():
    yield from collects(LARGE)


def collects_small():
    yield from collects(LARGE // 8)


def collects_many_small():
    """The same, so often that a GPU had better begin."""
    x = torch.ones(4, device="lazy")
    held = []
    for _ in range(100):
        held.append(chain(x, x))
        yield
    assert all(y.tolist() == [1] * 4 for y in held)


def fills_new_memory():
    """As autocast does with weights."""
    x = torch.ones(LARGE, device="lazy")
    held = []
    for _ in range(STEPS):
        t = torch.empty(LARGE, device="lazy", dtype=torch.bfloat16)
        t.copy_(x)
        held.append(chain(x, t.float()))
        yield
    assert all(float(y[-1]) == 1 for y in held)


def drops():
    x = torch.ones(LARGE, device="lazy")
    for _ in range(STEPS):
        chain(x, x)
        yield


def goes_on_from_the_last():
    x = torch.ones(LARGE, device="lazy")
    first = x
    held = []
    for _ in range(STEPS):
        x = chain(x, first)
        held.append(x)
        yield


def forward_passes():
    weight = torch.ones(LARGE, device="lazy", requires_grad=True)
    inputs = [torch.ones(LARGE, device="lazy") for _ in range(2)]
    losses = []
    for step in range(STEPS):
        losses.append(((inputs[step % 2] * weight).tanh() * weight).exp().sum())
        yield


def _traces(program):
    seen = []
    for _ in program():
        seen.append(torch_lazy.metrics()["traces_run"])
    return [count - seen[0] for count in seen]


# The second step tells: what made the inputs and both steps run. Later ones do when the next step's first call comes.
@pytest.mark.parametrize("program, traces", [
    (collects_large, [0, 3, 3, 4, 5, 6, 7, 8]),
    (fills_new_memory, [0, 0, 3, 3, 4, 5, 6, 7]),  # the first one learns what a copy between dtypes is
    (collects_small, [0] * STEPS),
    (collects_many_small, [0] * 63 + [2] * 33 + [3] * 4),  # 128 calls are worth a trace: 32 steps
    (drops, [0] * STEPS),
    (goes_on_from_the_last, [0] * STEPS),
    (forward_passes, [0] * STEPS),
])
def test_traces_run_before_somebody_waits(program, traces):
    assert in_child(_traces, program, compile="off") == traces


def _bytes_peak():
    for _ in collects_large():
        pass
    return torch_lazy.metrics()["bytes_peak"]


def test_what_died_with_the_step_is_not_stored():
    inputs, results = 3, STEPS
    assert in_child(_bytes_peak, compile="sync") == 4 * LARGE * (inputs + results)


def _launches_of_rows():
    """After each step, and after waiting, of the second of two equal rounds."""
    inputs = [torch.randn(1100, 4096, device="lazy") for _ in range(STEPS)]

    def step(x):
        for _ in range(16):  # results of many bytes, which are never stored
            x = x * 1.01
        return torch.softmax(x, -1)

    for _ in range(2):
        torch_lazy.sync()
        before = torch_lazy.metrics()["kernel_launches"]
        held, seen = [], []
        for x in inputs:
            held.append(step(x))
            seen.append(torch_lazy.metrics()["kernel_launches"] - before)
        torch_lazy.sync()
        seen.append(torch_lazy.metrics()["kernel_launches"] - before)
    for x, y in zip(inputs, held, strict=True):
        torch.testing.assert_close(y.cpu(), torch.softmax(x.cpu() * 1.01**16, -1), rtol=1e-4, atol=1e-9)
    return seen


# One, four, and those for which somebody waits.
def test_steps_share_launches():
    assert in_child(_launches_of_rows, compile="sync") == [0, 1, 1, 1, 1, 2, 2, 2, 3]
