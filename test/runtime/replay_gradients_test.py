# SPDX-License-Identifier: Apache-2.0
"""Gradients through replayed functions, however they come and whatever the functions do."""

import pytest
import torch
from torch import nn
from torch_lazy import make_replayable
from torch_lazy._library import take_draw

from replaying import compile_mode, replays  # noqa: F401


def numbers(*sizes, seed=0):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def same(result, expected):
    torch.testing.assert_close(result.cpu(), expected)
    assert result.stride() == expected.stride()


def test_numbers_that_gradients_depend_on():
    replayed = make_replayable(lambda x, rate, unused: (x * rate).square().sum())
    before = replays()
    for k in range(9):
        x = numbers(4, seed=k).to("lazy").requires_grad_()
        rate = 0.5 if k < 3 else k / 3
        replayed(x, rate, k * 0.25).backward()
        same(x.grad, 2 * rate**2 * x.detach().cpu())
    assert replays() - before >= 6


class DrawnTwice(torch.autograd.Function):
    """Dropout whose backward pass draws the mask again, as attention does on a GPU."""

    @staticmethod
    def forward(ctx, x):
        ctx.drawn = take_draw(4)
        return DrawnTwice.dropped(x, ctx.drawn)

    @staticmethod
    def backward(ctx, grad):
        return DrawnTwice.dropped(grad, ctx.drawn)

    @staticmethod
    def dropped(x, drawn):
        return torch.ops.torch_lazy.dropout(x, 0.5, 2.0, 2**31, *drawn, 64, 1, [0])[0]


def test_a_backward_pass_that_draws_what_the_forward_pass_drew():
    replayed = make_replayable(lambda x: DrawnTwice.apply(DrawnTwice.apply(x) + 1))
    before, masks = replays(), []
    for k in range(9):
        if k == 6:
            torch.manual_seed(5)  # a seed that no call was noted with
        xs = [torch.ones(64, device="lazy").requires_grad_() for _ in range(2)]
        ys = [replayed(x) for x in xs]
        for x, y in zip(xs, ys, strict=True):
            y.sum().backward()
            masks.append([y.tolist(), x.grad.tolist()])
    for y, grad in masks:
        # 2 (2 a + 1) b where the first is kept and the second, too: 4 of 4 where both are
        assert [value == 6 for value in y] == [value == 4 for value in grad] and {*grad} == {0, 4}
    assert len({tuple(y) for y, _ in masks}) == len(masks)
    assert replays() - before >= 24


class Branches(nn.Module):
    """Statistics written in the forward pass, results without gradients and one that may not be used."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8)

    def forward(self, x):
        y = self.norm(self.linear(x))
        return y.t(), y.argmax(1), y.tanh()


def train_branches(device, wrap, losses_of):
    torch.manual_seed(0)
    net = Branches().to(device)
    called, optimizer, told = wrap(net), torch.optim.SGD(net.parameters(), lr=0.05), []
    for k in range(8):
        optimizer.zero_grad()
        told += losses_of(lambda x: called(x.to(device)), numbers(6, 4, seed=k))
        optimizer.step()
    return [value.cpu() for value in (*told, *net.parameters(), *net.buffers())]


def expanded(call, x):
    loss = call(x)[2].sum()  # its gradient has stride 0
    loss.backward()
    return [loss.detach()]


def twice(call, x):
    y, most, z = call(x)
    assert not most.requires_grad
    loss = (y.t() * z).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return [loss.detach(), most]


def one_gradient_for_all(call, x):
    y, _, z = call(x)
    gradient = x.new_ones(6, 8).to(z.device)
    torch.autograd.backward([y.t(), z], [gradient, gradient])
    return [z.detach()]


def two_before_their_backward_passes(call, x):
    one, other = call(x)[0], call(x * 2)[2]
    (one.mean() + other.square().mean()).backward()
    return [one.detach(), other.detach()]


@pytest.mark.parametrize("wrap", [make_replayable, lambda net: torch.compile(net, backend="lazy")], ids=["replayable", "compile"])
@pytest.mark.parametrize("losses_of", [expanded, twice, one_gradient_for_all, two_before_their_backward_passes])
def test_gradients_that_come_in_many_ways(wrap, losses_of):
    torch._dynamo.reset()
    before = replays()
    for ours, theirs in zip(train_branches("lazy", wrap, losses_of), train_branches("cpu", lambda net: net, losses_of), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert replays() - before >= 6


def test_no_second_derivatives():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x.sin() * x, backend="lazy")
    for k in range(6):
        x = numbers(4, seed=k).to("lazy").requires_grad_()
        (gradient,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError):
            gradient.sum().backward()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2).mul_(3)[1:],
        lambda x: x[1:],
        lambda x: (x.view(-1), x + 1),
        lambda x: torch.utils.checkpoint.checkpoint(lambda y: y.sin().exp(), x, use_reentrant=False),
    ],
    ids=["written", "view", "view and more", "checkpoint"],
)
def test_what_autograd_has_to_know_of_a_compiled_function(function):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="lazy")
    for k in range(6):
        x = numbers(3, 4, seed=k).requires_grad_()
        on_device = x.detach().to("lazy").requires_grad_()
        results = []
        for called, leaf in (function, x), (compiled, on_device):
            y = called(leaf * 1)
            y = y[0] if isinstance(y, tuple) else y
            y.mul_(2)
            y.square().sum().backward()
            results.append(y.detach())
        same(results[1], results[0])
        torch.testing.assert_close(on_device.grad.cpu(), x.grad)


def test_a_compiled_function_that_writes_what_has_gradients():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, y: x.mul_(2).add_(y).sum(), backend="lazy")
    for k in range(6):
        grads = []
        for device, function in ("cpu", lambda x, y: x.mul_(2).add_(y).sum()), ("lazy", compiled):
            x, y = numbers(4, seed=k).to(device).requires_grad_(), numbers(4, seed=k + 9).to(device).requires_grad_()
            written = x * 1
            (function(written, y) + written.square().sum()).backward()
            grads.append((x.grad.cpu(), y.grad.cpu()))
        torch.testing.assert_close(grads[1], grads[0])
