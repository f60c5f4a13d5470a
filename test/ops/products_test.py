# SPDX-License-Identifier: Apache-2.0
"""Products of 16-bit floats: which are library calls on planned memory where kernels are CUDA's, and that ATen makes all others."""

import json
import os

import pytest
import torch

import torch_lazy

aten = torch.ops.aten
LOW = [torch.bfloat16, torch.float16]
FOR_CUDA = os.environ.get("LAZY_BACKEND") == "stand_in"


def normal(*sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def linear_backward(x, gradient, weight, wanted=(True, True, True)):
    """aten::linear_backward, which has no kernel on the CPU."""
    if x.device.type == "lazy":
        return [result for result in aten.linear_backward(x, gradient, weight, wanted) if result is not None]
    rows, of_rows = x.flatten(0, -2) if x.dim() > 1 else x[None], gradient.flatten(0, -2) if x.dim() > 1 else gradient[None]
    results = [(of_rows @ weight).view(x.shape), of_rows.t() @ rows, of_rows.float().sum(0).to(x.dtype)]
    return [result for result, is_wanted in zip(results, wanted, strict=True) if is_wanted]


def counted(call, operands):
    """What the call returns from a compiled trace, and (kernel launches, library calls, calls without a lowering)."""
    torch_lazy.set_option("compile", "sync")
    operands = [operand.to("lazy") for operand in operands]
    for _ in range(3):
        torch.ops.torch_lazy.sync()
        before = json.loads(torch.ops.torch_lazy.metrics())
        results = call(*operands)
        torch.ops.torch_lazy.sync()
        after = json.loads(torch.ops.torch_lazy.metrics())
    results = results if isinstance(results, (list, tuple)) else [results]
    names = ["kernel_launches", "library_calls", "calls_recorded", "traces_interpreted"]
    launches, calls, recorded, interpreted = (after[name] - before[name] for name in names)
    assert interpreted == 0
    return [result.cpu() for result in results], (launches, calls, recorded)


def assert_near(actual, expected):
    """Sums in f32, rounded once: by another order of the terms, at most to the neighbouring number."""
    for a, e in zip(actual, expected if isinstance(expected, (list, tuple)) else [expected], strict=True):
        assert a.dtype == e.dtype and a.shape == e.shape and a.stride() == e.stride()
        digit = torch.finfo(e.dtype).eps
        torch.testing.assert_close(a.double(), e.double(), rtol=digit, atol=digit)


# Call, the sizes of its operands, and where kernels are CUDA's: launches and library calls. A row by a weight is ours.
LOWERED = {
    "mm": (lambda x, y: aten.mm(x, y), [(40, 64), (64, 48)], (0, 1)),
    "transposed": (lambda x, y: x.t() @ y.t(), [(64, 40), (48, 64)], (0, 1)),
    "columns": (lambda x, y: x[:, 8:24] @ y[3:19], [(40, 64), (64, 48)], (0, 1)),
    "rows and columns that stride": (lambda x, y: x[:, ::2] @ y, [(40, 64), (32, 48)], (1, 1)),
    "computed": (lambda x, y: aten.mm(x * 2, y), [(40, 64), (64, 48)], (1, 1)),
    "read": (lambda x, y: aten.mm(x, y) * 2, [(40, 64), (64, 48)], (1, 1)),
    "there and back": (lambda x, y: x.float().view(80, 32).to(x.dtype) @ y, [(40, 64), (32, 48)], (0, 1)),
    "bmm": (lambda x, y: aten.bmm(x, y), [(5, 8, 16), (5, 16, 12)], (0, 1)),
    "bmm transposed": (lambda x, y: aten.bmm(x, y.transpose(1, 2)), [(5, 8, 16), (5, 12, 16)], (0, 1)),
    "bmm by one": (lambda x, y: aten.bmm(x, y.expand(5, 16, 12)), [(5, 8, 16), (16, 12)], (0, 1)),
    "mm out": (lambda x, y, out: aten.mm.out(x, y, out=out), [(40, 64), (64, 48), (40, 48)], (0, 1)),
    "addmm of nothing": (lambda b, x, y: aten.addmm(b, x, y, beta=0), [(48,), (40, 64), (64, 48)], (0, 1)),
    "baddbmm of nothing": (lambda b, x, y: aten.baddbmm(b, x, y, beta=0), [(5, 8, 12), (5, 8, 16), (5, 16, 12)], (0, 1)),
    "addmm": (lambda b, x, y: aten.addmm(b, x, y), [(48,), (40, 64), (64, 48)], (0, 1)),
    "addmm out": (lambda b, x, y, out: aten.addmm.out(b, x, y, out=out), [(48,), (40, 64), (64, 48), (40, 48)], (0, 1)),
    "addmm of a column": (lambda b, x, y: aten.addmm(b[:, 1], x, y), [(48, 2), (40, 64), (64, 48)], (1, 1)),
    "addmm side by side": (lambda b, x, y: torch.cat([aten.addmm(b, x, y), x], 1), [(48,), (40, 64), (64, 48)], (1, 1)),
    "linear": (lambda x, w: aten.linear(x, w), [(2, 20, 64), (48, 64)], (0, 1)),
    "linear with a bias": (lambda b, x, w: aten.linear(x, w, b), [(48,), (2, 20, 64), (48, 64)], (0, 1)),
    "linear of a vector with a bias": (lambda b, x, w: aten.linear(x, w, b), [(48,), (64,), (48, 64)], (1, 0)),
    "linear to one with a bias": (lambda b, x, w: aten.linear(x, w, b), [(1,), (40, 64), (1, 64)], (0, 1)),
    "linear with a bias, computed": (lambda b, x, w: aten.linear(x * 2, w, b + 1) * 2, [(48,), (40, 64), (48, 64)], (3, 1)),
    "linear and relu": (lambda b, x, w: aten.linear(x, w, b).relu(), [(48,), (2, 20, 64), (48, 64)], (0, 1)),
    "linear and relu in place": (lambda b, x, w: aten.linear(x, w, b).relu_(), [(48,), (40, 64), (48, 64)], (0, 1)),
    "linear and relu, read": (lambda b, x, w: aten.linear(x, w, b).relu() * 2, [(48,), (40, 64), (48, 64)], (1, 1)),
    "linear, and relu of it": (lambda b, x, w: [y := aten.linear(x, w, b), y.relu()], [(48,), (40, 64), (48, 64)], (1, 1)),
    "linear of a vector": (lambda x, w: aten.linear(x, w), [(64,), (48, 64)], (1, 0)),
    "mm of a row": (lambda x, w: aten.mm(x, w.t()), [(1, 64), (48, 64)], (1, 0)),
    "mm of a row by columns": (lambda x, y: aten.mm(x, y), [(1, 64), (64, 48)], (0, 1)),
    "mm of a row, computed and read": (lambda x, w: aten.mm(x * 2, w.t()) * 2, [(1, 64), (48, 64)], (2, 0)),
    "linear_backward": (linear_backward, [(2, 20, 64), (2, 20, 48), (48, 64)], (1, 2)),
    "linear_backward of a vector": (linear_backward, [(64,), (48,), (48, 64)], (2, 1)),
    "of one term each": (lambda x, y: aten.mm(x, y), [(40, 1), (1, 48)], (1, 0)),
    "weight's gradient": (lambda *t: linear_backward(*t, [False, True, False]), [(40, 64), (40, 48), (48, 64)], (0, 1)),
    "bias's gradient": (lambda *t: linear_backward(*t, [False, False, True]), [(40, 64), (40, 48), (48, 64)], (1, 0)),
    "gradients in f32": (lambda *t: [g.float() for g in linear_backward(*t)[1:]], [(40, 64), (40, 48), (48, 64)], (2, 1)),
}


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("name", LOWERED)
def test_products_are_so_many_calls(name, dtype):
    call, sizes, counts = LOWERED[name]
    operands = [normal(*size).to(dtype) for size in sizes]
    actual, (launches, calls, recorded) = counted(call, operands)
    assert_near(actual, call(*operands))
    if FOR_CUDA:
        assert (launches, calls, recorded) == (*counts, 0)
    else:
        assert recorded >= 1


# Eager rounds these once, after it has added or scaled.
NOT_LOWERED = {
    "addmm of a matrix": (lambda b, x, y: aten.addmm(b, x, y), [(40, 48), (40, 64), (64, 48)]),
    "addmm of a number": (lambda b, x, y: aten.addmm(b, x, y), [(1,), (40, 64), (64, 48)]),
    "addmm of a part": (lambda b, x, y: aten.addmm(b, x, y, beta=0.5), [(48,), (40, 64), (64, 48)]),
    "addmm scaled": (lambda b, x, y: aten.addmm(b, x, y, beta=0, alpha=0.3), [(48,), (40, 64), (64, 48)]),
    "baddbmm": (lambda b, x, y: aten.baddbmm(b, x, y), [(5, 8, 12), (5, 8, 16), (5, 16, 12)]),
}


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("name", NOT_LOWERED)
def test_what_is_added_before_it_is_rounded_is_atens(name, dtype):
    call, sizes = NOT_LOWERED[name]
    operands = [normal(*size).to(dtype) for size in sizes]
    actual, counts = counted(call, operands)
    assert counts == (0, 1, 1)
    assert torch.equal(actual[0], call(*operands))


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_products_of_nothing(dtype):
    for call, sizes in [(aten.mm, [(3, 0), (0, 4)]), (aten.mm, [(0, 3), (3, 4)]), (aten.bmm, [(2, 3, 0), (2, 0, 4)]),
                        (linear_backward, [(4, 0), (4, 5), (5, 0)]), (linear_backward, [(0, 3), (0, 5), (5, 3)]),
                        (aten.addmm, [(4,), (3, 0), (0, 4)]), (aten.addmm, [(4,), (0, 3), (3, 4)]), (aten.addmm, [(0,), (2, 3), (3, 0)])]:
        operands = [torch.zeros(size, dtype=dtype) for size in sizes]
        assert_near(counted(call, operands)[0], call(*operands))


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_relu_of_no_terms(dtype):
    operands = [torch.arange(-2, 2).to(dtype), torch.zeros(3, 0, dtype=dtype), torch.zeros(0, 4, dtype=dtype)]
    (actual,), _ = counted(lambda *t: aten.addmm(*t).relu(), operands)
    assert actual.tolist() == [[0, 0, 0, 1]] * 3


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_special_numbers(dtype):
    x, y = normal(6, 64), normal(64, 5)
    x[0, 0], x[1, 1], x[2, 2], y[:, 1] = float("nan"), float("inf"), -float("inf"), 6e4
    operands = [x.to(dtype), y.to(dtype)]
    (actual,), _ = counted(aten.mm, operands)
    expected = aten.mm(*operands)
    assert torch.equal(actual.isnan(), expected.isnan()) and torch.equal(actual.isinf(), expected.isinf())


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_relu_keeps_nan(dtype):
    x, w, b = normal(6, 64), normal(48, 64), normal(48)
    x[0, 0], x[1, 1], b[5] = float("nan"), float("inf"), float("nan")
    operands = [tensor.to(dtype) for tensor in (x, w, b)]
    (actual,), _ = counted(lambda *t: aten.linear(*t).relu(), operands)
    expected = aten.linear(*operands).relu()
    assert torch.equal(actual.isnan(), expected.isnan()) and torch.equal(actual.isinf(), expected.isinf())
    assert not actual.signbit()[~actual.isnan()].any()


def trained(device, dtype, activation):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), activation(), torch.nn.Linear(96, 32, bias=False)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for step in range(5):
        torch.manual_seed(step)
        x, y = torch.randn(2, 20, 64).to(device), torch.randn(2, 20, 32).to(device)
        with torch.autocast(device, dtype=dtype):
            loss = torch.nn.functional.mse_loss(net(x).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in net.parameters()]


@pytest.mark.parametrize("activation", [torch.nn.Tanh, torch.nn.ReLU])
@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_training_in_mixed_precision_is_eagers(dtype, activation):
    torch_lazy.set_option("compile", "sync")
    losses, parameters = trained("lazy", dtype, activation)
    expected_losses, expected = trained("cpu", dtype, activation)
    assert losses == pytest.approx(expected_losses, rel=torch.finfo(dtype).eps)
    for a, e in zip(parameters, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=torch.finfo(dtype).eps / 10)


def head_trained(device, rows, width, words):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, words)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=10)
    losses = []
    for step in range(2):
        torch.manual_seed(step)
        x, classes = torch.randn(rows, width).to(device), torch.randint(words, (rows,)).to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(x), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in net.parameters()]


def test_odd_head_is_eagers():
    """So large that its products are padded on a GPU."""
    torch_lazy.set_option("compile", "sync")
    rows, width, words = 512, 512, 8190
    losses, parameters = head_trained("lazy", rows, width, words)
    expected_losses, expected = head_trained("cpu", rows, width, words)
    assert losses == pytest.approx(expected_losses, rel=1e-3)
    for a, e in zip(parameters, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=2e-2, atol=2e-3)
