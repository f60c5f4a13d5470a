# SPDX-License-Identifier: Apache-2.0
"""Interpreted, each number is eager CUDA's, bit for bit, call by call in one process; random numbers too, for the same seed."""

import pytest
import torch
import torch_lazy
from torch import nn
from torch.nn import functional as F

from devices import EAGER


@pytest.fixture(autouse=True)
def _interpreted():
    torch_lazy.set_option("compile", "off")
    torch.backends.cudnn.deterministic = True
    yield
    torch_lazy.sync()


def _same(function, *inputs):
    """The function's results, and gradients of its first, on both devices."""
    results = {}
    for device in EAGER, "lazy":
        torch.manual_seed(11)
        copies = [x.clone().to(device) for x in inputs]
        for x in copies:
            if x.is_floating_point():
                x.requires_grad_()
        outputs = function(*copies)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        if outputs[0].requires_grad:
            outputs[0].float().square().sum().backward()
        results[device] = [y.detach().cpu() for y in outputs] + [x.grad.cpu() for x in copies if x.grad is not None]
    assert len(results["lazy"]) == len(results[EAGER]) > 0
    for mine, eager in zip(results["lazy"], results[EAGER], strict=True):
        torch.testing.assert_close(mine, eager, rtol=0, atol=0, equal_nan=True)


def _randn(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


CALLS = {
    "gelu": lambda x: F.gelu(x),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, (x.size(-1),)),
    "sum": lambda x: x.sum(0),
    "var": lambda x: x.var(1),
    "product": lambda x: x @ x.t(),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort(1),
    "top": lambda x: x.topk(3, 1),
    "gather": lambda x: x.gather(1, torch.arange(6, device=x.device).expand(x.size(0), 6)),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "convolution": lambda x: F.conv2d(x.view(1, 1, *x.shape), x[:3, :3].reshape(1, 1, 3, 3), padding=1),
    "attention": lambda x: F.scaled_dot_product_attention(*(x.view(1, 2, -1, 32),) * 3, is_causal=True),
    "view written": lambda x: x.clone().t()[2:5].mul_(2),
    "where": lambda x: torch.where(x > 0, x, x.exp()),
    "interpolate": lambda x: F.interpolate(x.view(1, 1, *x.shape), scale_factor=2, mode="nearest"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_call(call, dtype):
    _same(CALLS[call], _randn(48, 64, dtype=dtype))


DRAWS = {
    "rand": lambda device: torch.rand(1000, device=device),
    "randn": lambda device: torch.randn(33, 77, device=device),
    "randn half": lambda device: torch.randn(999, device=device, dtype=torch.float16),
    "randint": lambda device: torch.randint(-5, 1000, (500,), device=device),
    "randperm": lambda device: torch.randperm(257, device=device),
    "bernoulli": lambda device: torch.bernoulli(torch.full((600,), 0.3, device=device)),
    "multinomial": lambda device: torch.multinomial(torch.ones(50, device=device), 20),
    "exponential": lambda device: torch.empty(128, device=device).exponential_(),
    "normal_": lambda device: torch.empty(64, 5, device=device).normal_(2, 3),
    "dropout": lambda device: F.dropout(torch.ones(64, 64, device=device), 0.4),
    "dropout of f64": lambda device: F.dropout(torch.ones(66, 5, device=device, dtype=torch.float64), 0.4),
    "dropout of bf16": lambda device: F.dropout(torch.ones(64, 65, device=device, dtype=torch.bfloat16), 0.1),
    "dropout of f16, by four": lambda device: F.dropout(torch.ones(33, 4, device=device, dtype=torch.float16), 0.1),
    "dropout of an odd number": lambda device: F.dropout(torch.ones(33, 77, device=device), 0.4),
    "dropout from an odd place": lambda device: F.dropout(torch.ones(1025, device=device)[1:], 0.4),
    "dropout of columns": lambda device: F.dropout(torch.ones(64, 64, device=device)[:, 3:60], 0.4),
    "dropout, transposed": lambda device: F.dropout(torch.ones(64, 33, device=device).t(), 0.4),
    "dropout, transposed, of an odd number": lambda device: F.dropout(torch.ones(63, 33, device=device).t(), 0.4),
    "dropout, channels last": lambda device: F.dropout(torch.ones(2, 8, 5, 5, device=device).to(memory_format=torch.channels_last), 0.4),
    "dropout of many": lambda device: F.dropout(torch.ones(3000, 3000, device=device), 0.4),
    "dropout of many, bf16": lambda device: F.dropout(torch.ones(3000, 3000, device=device, dtype=torch.bfloat16), 0.4),
    "dropout of many, an odd number": lambda device: F.dropout(torch.ones(2999, 2999, device=device), 0.4),
    "dropout of all": lambda device: torch.native_dropout(torch.rand(9, device=device), 1.0, True)[1] + torch.rand(9, device=device),
    "dropout of none": lambda device: torch.native_dropout(torch.rand(900, device=device), 0.0, True)[0],
    "feature dropout": lambda device: F.dropout2d(torch.ones(4, 8, 5, 5, device=device), 0.4),
    "trunc_normal_": lambda device: nn.init.trunc_normal_(torch.empty(100, device=device)),
}


@pytest.mark.parametrize("compile", ["off", "sync"])
@pytest.mark.parametrize("draw", DRAWS, ids=str)
def test_random_numbers(draw, compile):
    """Three draws in a row: the generator's state moves on as eager's does."""
    torch_lazy.set_option("compile", compile)
    drawn = {}
    for device in EAGER, "lazy":
        torch.manual_seed(42)
        drawn[device] = [DRAWS[draw](device).cpu() for _ in range(3)]
    assert all(torch.equal(mine, eager) for mine, eager in zip(drawn["lazy"], drawn[EAGER], strict=True))
    assert not torch.equal(*drawn[EAGER][:2])


def test_generators_of_a_program():
    drawn = {}
    for device in EAGER, "lazy":
        generator = torch.Generator(device=device).manual_seed(5)
        drawn[device] = [torch.rand(9, device=device, generator=generator).cpu() for _ in range(2)]
    assert all(torch.equal(mine, eager) for mine, eager in zip(drawn["lazy"], drawn[EAGER], strict=True))


def test_random_state():
    torch.manual_seed(3)
    state = torch.lazy.get_rng_state()
    first = torch.rand(5, device="lazy").cpu()
    torch.lazy.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="lazy").cpu(), first)


def _losses(device, steps=12):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8 * 36, 10)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        x = _randn(4, 3, 8, 8, seed=step).to(device)
        loss = F.cross_entropy(net(x), torch.arange(4, device=device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_losses():
    """Without cuDNN, whose batch norm eager takes and we do not: it rounds otherwise."""
    with torch.backends.cudnn.flags(enabled=False):
        assert _losses("lazy") == _losses(EAGER)


def _products(x, w):
    """What is TF32 is told between a pointwise call and the product that takes its result."""
    results = []
    try:
        for allowed in (False, True, True, False):
            y = x * 2
            torch.backends.cuda.matmul.allow_tf32 = allowed
            results.append((y @ w) + 1)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    return results


def test_tf32_is_that_of_the_call():
    _same(_products, _randn(256, 512), _randn(512, 256, seed=1))
    if EAGER == "cuda":
        f32, tf32, _, again = _products(_randn(256, 512).to("lazy"), _randn(512, 256, seed=1).to("lazy"))
        assert not torch.equal(f32.cpu(), tf32.cpu())
        assert torch.equal(f32.cpu(), again.cpu())
