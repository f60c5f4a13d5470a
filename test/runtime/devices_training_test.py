# SPDX-License-Identifier: Apache-2.0
"""Training on several devices: losses, traces and kernels are those of one (lazy/eager/current_device). All stand on the CPU;
with LAZY_TEST_EAGER=cuda each stands on a GPU."""

import functools
import os

os.environ["LAZY_DEVICES"] = "2"
os.environ["LAZY_COMPILE"] = "sync"

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_lazy  # noqa: E402
from torch import nn  # noqa: E402

from child import in_child  # noqa: E402

FIRST, OTHER = torch.device("lazy:0"), torch.device("lazy:1")
BACKENDS = ["cuda"] if os.environ.get("LAZY_TEST_EAGER") == "cuda" else ["cpu", "stand_in"]


def _train(devices, steps=12, replayed=False):
    """Losses of a model whose layers are on these devices, and the metrics of the last steps."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.GELU()), nn.Linear(16, 16)]
    layers = [layer.to(device) for layer, device in zip(layers, devices)]
    parameters = [p for layer in layers for p in layer.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=0.01)
    x, y = torch.randn(8, 16).to(devices[0]), torch.randn(8, 16).to(devices[1])
    calls = [torch_lazy.make_replayable(layer) if replayed else layer for layer in layers]
    losses = []
    for step in range(steps):
        if step == 8:
            torch_lazy.reset_metrics()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(calls[1](calls[0](x).to(devices[1])), y)
        loss.backward()
        optimizer.step()
        assert all(p.grad.device == p.device for p in parameters)
        losses.append(loss.item())
    return losses, torch_lazy.metrics()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_on_two_devices(backend):
    losses, metrics = in_child(_train, (FIRST, OTHER), backend=backend)
    expected, _ = in_child(_train, (FIRST, FIRST), backend=backend)
    assert losses == pytest.approx(expected, rel=1e-6)
    assert metrics["trace_misses"] == 0 and metrics["kernels_compiled"] == 0
    assert metrics["calls_immediate"] == 0
    assert metrics["cuts"]["another device"] > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_on_another_device(backend):
    losses, metrics = in_child(_train, (OTHER, OTHER), backend=backend)
    expected, of_first = in_child(_train, (FIRST, FIRST), backend=backend)
    assert losses == expected
    for name in ("trace_misses", "kernel_launches", "graph_replays", "kernels_compiled"):
        assert metrics[name] == of_first[name], name


@pytest.mark.parametrize("backend", BACKENDS)
def test_replayed_on_another_device(backend):
    losses, metrics = in_child(functools.partial(_train, replayed=True), (FIRST, OTHER), backend=backend)
    expected, _ = in_child(_train, (FIRST, FIRST), backend=backend)
    assert losses == pytest.approx(expected, rel=1e-6) and metrics["replays"] > 0


def _compiled_kernels():
    compiled, losses = [], []
    for device in (FIRST, OTHER):
        torch_lazy.reset_metrics()
        losses.append(_train((device, device), steps=6)[0])
        compiled.append(torch_lazy.metrics()["kernels_compiled"])
    return compiled, losses


@pytest.mark.parametrize("backend", BACKENDS)
def test_devices_share_kernels(backend, tmp_path):
    (of_first, of_other), losses = in_child(_compiled_kernels, backend=backend, cache_dir=str(tmp_path))
    assert of_first > of_other == 0 and losses[0] == losses[1]
