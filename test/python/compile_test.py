# SPDX-License-Identifier: Apache-2.0
"""torch.compile, torch.export and the tracers, which read programs through fake tensors."""
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch_lazy import _compatibility


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def scaled_sum(x):
    return (x.sin() + 1).sum(0)


def trained(device, wrap=lambda model: model):
    """Losses of some steps with dropout, and the parameters after them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)).to(device)
    x = torch.arange(24.0).view(8, 3).to(device)
    called, optimizer, losses = wrap(model), torch.optim.Adam(model.parameters()), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = called(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.tolist() for parameter in model.parameters()]


def test_every_patch_finds_its_place():
    assert all(_compatibility._find(path) for path in (*_compatibility._REPLACED, *_compatibility._FORGETTING))


def test_fake_tensors_have_our_device_and_strides():
    fake = FakeTensorMode().from_tensor(torch.ones(4, 3, device="lazy")[1:].t())
    assert fake.device == torch.device("lazy:0") and fake.stride() == (1, 3) and fake.shape == (3, 3)


@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
def test_compiled_training_equals_recorded(backend):
    assert trained("lazy", lambda model: torch.compile(model, backend=backend)) == trained("lazy")


@pytest.mark.parametrize("options", [{"fullgraph": True}, {"dynamic": True}, {"mode": "max-autotune"}])
def test_options_of_compile(options):
    compiled = torch.compile(scaled_sum, **options)
    for rows in (3, 5):
        x = torch.rand(rows, 2, device="lazy")
        torch.testing.assert_close(compiled(x), scaled_sum(x), rtol=0, atol=0)


@pytest.mark.parametrize("function", [
    lambda: torch.ones(3, device="lazy") + 1,
    lambda: (torch.ones(3).to("lazy") + 1),
    lambda: torch.func.grad(lambda x: (x * x).sum())(torch.ones(3, device="lazy")),
])
def test_tensors_made_inside(function):
    assert torch.compile(function)().tolist() == [2, 2, 2]


def test_cpu_functions_still_go_to_inductor(monkeypatch):
    from torch._inductor import compile_fx
    given = []
    monkeypatch.setattr(compile_fx, "compile_fx", lambda graph, *_, **__: given.append(graph) or graph.forward)
    for device in ("lazy", "cpu"):
        torch.compile(scaled_sum)(torch.rand(4, 3, device=device))
        assert len(given) == (device == "cpu")


def test_compiling_is_quiet():
    program = ("import torch, torch_lazy\n"
               "x = torch.ones(2, 3, device='lazy', requires_grad=True)\n"
               "torch.compile(lambda x: x.sin().sum())(x).backward()\n"
               "assert x.grad is not None")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.parametrize("capture", [
    lambda model, x: torch.export.export(model, (x,)).module(),
    lambda model, x: torch.fx.symbolic_trace(model),
    lambda model, x: torch.jit.script(model),
    lambda model, x: torch.jit.trace(model, (x,)),
    lambda model, x: make_fx(model)(x),
    lambda model, x: make_fx(model, tracing_mode="fake", _allow_non_fake_inputs=True)(x),
    lambda model, x: torch.func.functionalize(model),
])
@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_captured_programs_compute_the_same(capture):
    model, x = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).to("lazy"), torch.rand(4, 3, device="lazy")
    result = capture(model, x)(x)
    assert result.device.type == "lazy"
    torch.testing.assert_close(result, model(x), rtol=0, atol=0)
