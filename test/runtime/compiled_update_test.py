# SPDX-License-Identifier: Apache-2.0
"""torch.compile(optimizer.step, backend="lazy"): what Dynamo holds as constants, parameters and an optimizer's state, is written in place."""
import pytest
import torch

import torch_lazy

STEPS = 8
SGD = lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)  # noqa: E731
ADAM = lambda parameters: torch.optim.Adam(parameters, capturable=True)  # noqa: E731
ADAMW = lambda parameters: torch.optim.AdamW(parameters, capturable=True, weight_decay=0.1)  # noqa: E731


@pytest.fixture(autouse=True)
def compiled_at_once():
    torch._dynamo.reset()
    torch_lazy.set_option("compile", "sync")


class Training:
    """Parameters that are updated with one set of gradients, and then with the other."""

    def __init__(self, make, is_compiled, dtype):
        generator = torch.Generator().manual_seed(0)
        draw = lambda: [torch.randn(n, 3, dtype=dtype, generator=generator).to("lazy") for n in (2, 4, 5)]  # noqa: E731
        self.parameters = [torch.nn.Parameter(tensor) for tensor in draw()]
        self.gradients = [draw(), draw()]
        self.optimizer = make(self.parameters)
        self.update = torch.compile(self.optimizer.step, backend="lazy") if is_compiled else self.optimizer.step

    def run(self, steps):
        for step in range(steps):
            for parameter, gradient in zip(self.parameters, self.gradients[step % 2], strict=True):
                parameter.grad = gradient
            self.update()

    def values(self):
        states = self.optimizer.state_dict()["state"]
        return [p.detach().cpu() for p in self.parameters], {k: {n: x.cpu() for n, x in state.items()} for k, state in states.items()}


def both(make, drive, dtype=torch.float32):
    """drive(training) recorded and compiled: their values must be equal, but for how Dynamo writes lerp."""
    found = []
    for is_compiled in (False, True):
        training = Training(make, is_compiled, dtype)
        drive(training)
        found.append(training.values())
    torch.testing.assert_close(found[1], found[0])
    return training


@pytest.mark.parametrize("make", [SGD, ADAM, ADAMW], ids=["sgd", "adam", "adamw"])
def test_a_compiled_update_is_one_replay(make):
    training = both(make, lambda training: training.run(STEPS))
    training.run(STEPS)
    torch.lazy.synchronize()
    torch_lazy.reset_metrics()
    training.run(STEPS)
    torch.lazy.synchronize()
    metrics = torch_lazy.metrics()
    assert metrics["replays"] == STEPS and metrics["trace_misses"] == 0


@pytest.mark.parametrize("make", [SGD, ADAM], ids=["sgd", "adam"])
def test_writes_are_counted(make):
    versions = []

    def drive(training):
        training.run(STEPS)
        before = [p._version for p in training.parameters]
        training.run(2)
        versions.append([p._version - was for p, was in zip(training.parameters, before, strict=True)])

    both(make, drive)
    assert versions[0] == versions[1] and min(versions[0]) > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("make", [SGD, ADAM], ids=["sgd", "adam"])
def test_parameters_with_other_data(make, dtype):
    """Complex ones are written through views, and the former data live on, unwritten."""
    former = []

    def drive(training):
        training.run(STEPS)
        held = [parameter.data for parameter in training.parameters]
        for parameter in training.parameters:
            parameter.data = parameter.data * 2
        training.run(STEPS)
        former.append([data.cpu() for data in held])

    both(make, drive, dtype)
    torch.testing.assert_close(former[1], former[0])


@pytest.mark.parametrize("make", [SGD, ADAM], ids=["sgd", "adam"])
def test_a_state_that_is_loaded(make):
    def drive(training):
        training.run(2)
        saved = training.optimizer.state_dict()
        saved = {"state": {k: {n: x.clone() for n, x in s.items()} for k, s in saved["state"].items()}, "param_groups": saved["param_groups"]}
        training.run(STEPS)
        training.optimizer.load_state_dict(saved)
        training.run(STEPS)

    both(make, drive)
