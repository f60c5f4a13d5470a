# SPDX-License-Identifier: Apache-2.0
"""A kernel that does not compile costs the calls that it was made for: ATen runs these, kernels the rest."""

import os
import pathlib
import sys

import faults  # before torch_lazy
import pytest
import torch
import torch_lazy

from child import in_child

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))

PROGRAMS = ["mlp", "resnet", "gpt", "lstm", "dropout"]
BACKENDS = ["cuda"] if os.environ.get("LAZY_TEST_EAGER") == "cuda" else ["cpu", "stand_in"]
STEPS = 4


def _train(name, number, after):
    """Losses, metrics and explain() of a program of which the compiler refuses so many kernels, after as many others."""
    import importlib

    from programs import Options

    faults.spoil_kernels(number, after)
    losses = importlib.import_module(name).train(Options(device="lazy", steps=STEPS))
    return losses, torch_lazy.metrics(), torch_lazy.explain()


def train(name, backend, cache, number=0, after=0, errors=None):
    return in_child(_train, name, number, after, compile="sync", backend=backend, cache_dir=str(cache), errors=errors and str(errors))


def failures(explained):
    return [line for line in explained.splitlines() if line.startswith("kernel failed")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What a program does with all its kernels."""
    known = {}

    def of(name, backend):
        if (name, backend) not in known:
            known[name, backend] = train(name, backend, tmp_path_factory.mktemp("cache"))
        return known[name, backend]

    return of


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel(name, backend, plain, tmp_path):
    reference, whole, _ = plain(name, backend)
    after = whole["kernels_compiled"] // 2
    losses, metrics, explained = train(name, backend, tmp_path, 1, after, tmp_path / "errors")
    torch.testing.assert_close(losses, reference, rtol=1e-4, atol=1e-5)
    assert metrics["kernels_failed"] == 1
    assert metrics["compiles_pending"] == 0
    assert metrics["traces_interpreted"] == whole["traces_interpreted"]
    assert metrics["kernels_compiled"] >= whole["kernels_compiled"] - 1
    assert 0.6 * whole["calls_compiled"] < metrics["calls_compiled"] < whole["calls_compiled"]
    assert metrics["kernel_launches"] > 0
    told = failures(explained)
    assert len(told) == 1 and "aten::" in told[0] and f"{name}.py" in told[0]
    assert "a fault that was asked for" in explained
    warnings = [line for line in (tmp_path / "errors").read_text().splitlines() if line.startswith("lazy: warning")]
    assert len(warnings) == 1 and "a kernel failed" in warnings[0] and "aten::" in warnings[0]


def test_the_next_process_finds_the_rest_on_disk(plain, tmp_path):
    _, whole, _ = plain("mlp", BACKENDS[0])
    train("mlp", BACKENDS[0], tmp_path, 1, whole["kernels_compiled"] // 2)
    _, metrics, _ = train("mlp", BACKENDS[0], tmp_path)
    assert metrics["kernels_compiled"] == 1  # it was refused for the test alone
    assert metrics["kernels_from_disk"] == whole["kernels_compiled"] - 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_kernels(backend, plain, tmp_path):
    reference, whole, _ = plain("mlp", backend)
    losses, metrics, explained = train("mlp", backend, tmp_path, 3, 1)
    torch.testing.assert_close(losses, reference, rtol=1e-4, atol=1e-5)
    assert metrics["kernels_failed"] == len(failures(explained)) == 3
    assert metrics["traces_interpreted"] == whole["traces_interpreted"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_kernels(backend, plain, tmp_path):
    reference, _, _ = plain("mlp", backend)
    losses, metrics, _ = train("mlp", backend, tmp_path, 10**9)
    torch.testing.assert_close(losses, reference, rtol=1e-4, atol=1e-5)
    assert metrics["kernels_failed"] > 3
    assert metrics["kernels_compiled"] == metrics["kernel_launches"] == metrics["calls_compiled"] == 0


def _until_compiled():
    """The metrics once kernels run, and a result."""
    faults.spoil_kernels(1, 0)
    x = torch.linspace(-1, 1, 600, device="lazy").view(20, 30)
    while torch_lazy.metrics()["kernel_launches"] == 0:
        y = torch.softmax(x * 3, 1) @ torch.tanh(x).mT.contiguous()
        y = torch.sigmoid(y)
        result = y.tolist()
    return torch_lazy.metrics(), result


@pytest.mark.parametrize("backend", BACKENDS)
def test_beside_the_program(backend, tmp_path):
    errors = tmp_path / "errors"
    metrics, result = in_child(_until_compiled, compile="async", backend=backend, cache_dir=str(tmp_path), errors=str(errors))
    x = torch.linspace(-1, 1, 600).view(20, 30)
    torch.testing.assert_close(torch.tensor(result), torch.sigmoid(torch.softmax(x * 3, 1) @ torch.tanh(x).mT))
    assert metrics["kernels_failed"] == 1 and metrics["kernel_launches"] > 0
    line = _until_compiled.__code__.co_firstlineno + 5
    warning = errors.read_text()
    assert any(f" at {__file__}:{line + k} in _until_compiled" in warning for k in range(2)), warning  # of the calls, not of the wait


def _sizes(sizes):
    """Metrics each time that a net has been trained on batches of these sizes; the first time teaches shapes."""
    faults.spoil_kernels(1, 1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Tanh(), torch.nn.Linear(12, 4)).to("lazy")
    with torch.no_grad():
        for value in net.parameters():
            value.copy_(torch.linspace(-0.3, 0.3, value.numel()).view_as(value))
    optimizer, metrics = torch.optim.Adam(net.parameters(), lr=1e-2), []
    for _ in range(3):
        for size in sizes:
            optimizer.zero_grad()
            net(torch.ones(size, 8, device="lazy").cumsum(1) / 8).square().mean().backward()
            optimizer.step()
            torch_lazy.sync()
        metrics.append(torch_lazy.metrics())
    return metrics


def test_one_plan_serves_all_sizes(tmp_path):
    few, many = (
        in_child(_sizes, sizes, compile="sync", backend=BACKENDS[0], cache_dir=str(tmp_path / str(len(sizes))))
        for sizes in ([16], list(range(16, 25)))
    )
    for _, second, third in (few, many):
        assert second["kernels_failed"] == third["kernels_failed"] == 1
        assert second["traces_interpreted"] == third["traces_interpreted"]
    assert many[2]["kernels_compiled"] == few[2]["kernels_compiled"]
