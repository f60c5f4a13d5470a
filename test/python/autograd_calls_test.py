# SPDX-License-Identifier: Apache-2.0
"""The calls that autograd makes: gradients of what is recorded whole, what modes and subclasses see, additions in place."""

import pytest
import torch
import torch.nn.functional as F
import torch_lazy
from outcomes import assert_like_eager, leaf
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128]
# Eager rounds after each part of the double backward, and has kernels of oneDNN for the LSTM in float32.
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}, torch.bfloat16: {"rtol": 0.05, "atol": 0.5},
             torch.float16: {"rtol": 0.05, "atol": 0.2}, torch.complex64: {"rtol": 1e-5, "atol": 1e-4}}

WHOLE = {
    "linear": lambda d, t: (F.linear, [leaf(d, 2, 3, 4, dtype=t), leaf(d, 5, 4, dtype=t), leaf(d, 5, dtype=t)]),
    "linear without bias": lambda d, t: (F.linear, [leaf(d, 3, 4, dtype=t), leaf(d, 5, 4, dtype=t)]),
    "linear of a vector": lambda d, t: (F.linear, [leaf(d, 4, dtype=t), leaf(d, 5, 4, dtype=t), leaf(d, 5, dtype=t)]),
    "bilinear": lambda d, t: (F.bilinear, [leaf(d, 3, 4, dtype=t), leaf(d, 3, 2, dtype=t), leaf(d, 5, 4, 2, dtype=t)]),
    "conv1d": lambda d, t: (F.conv1d, [leaf(d, 2, 4, 9, dtype=t), leaf(d, 6, 4, 3, dtype=t), leaf(d, 6, dtype=t)]),
    "conv2d": lambda d, t: (lambda *a: F.conv2d(*a, stride=2, padding=1, groups=2),
                            [leaf(d, 2, 4, 6, 6, dtype=t), leaf(d, 6, 2, 3, 3, dtype=t), leaf(d, 6, dtype=t)]),
    "conv_transpose2d": lambda d, t: (F.conv_transpose2d, [leaf(d, 2, 4, 3, 3, dtype=t), leaf(d, 4, 2, 3, 3, dtype=t)]),
    "attention": lambda d, t: (F.scaled_dot_product_attention, [leaf(d, 2, 2, 5, 8, dtype=t) for _ in range(3)]),
    "causal attention": lambda d, t: (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                                      [leaf(d, 2, 2, 5, 8, dtype=t) for _ in range(3)]),
    "layer_norm": lambda d, t: (lambda x, *a: F.layer_norm(x, (6,), *a),
                                [leaf(d, 4, 6, dtype=t), leaf(d, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "group_norm": lambda d, t: (lambda x, *a: F.group_norm(x, 2, *a),
                                [leaf(d, 4, 6, 3, dtype=t), leaf(d, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "batch_norm": lambda d, t: (lambda x, *a: F.batch_norm(x, None, None, *a, training=True),
                                [leaf(d, 4, 6, 3, dtype=t), leaf(d, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "instance_norm": lambda d, t: (F.instance_norm, [leaf(d, 4, 6, 5, dtype=t)]),
    "rms_norm": lambda d, t: (lambda x, w: F.rms_norm(x, (6,), w), [leaf(d, 4, 6, dtype=t), leaf(d, 6, dtype=t)]),
    "cross_entropy": lambda d, t: (lambda x: F.cross_entropy(x, torch.tensor([1, 0, 2], device=x.device), label_smoothing=0.1),
                                   [leaf(d, 3, 4, dtype=t)]),
    "embedding": lambda d, t: (lambda w: F.embedding(torch.tensor([[1, 0], [2, 1]], device=w.device), w, padding_idx=0),
                               [leaf(d, 3, 4, dtype=t)]),
    "dropout": lambda d, t: (lambda x: F.dropout(x, 0.4), [leaf(d, 3, 4, dtype=t)]),
    "lstm": lambda d, t: (lambda x, *p: torch.lstm(x, (x.new_zeros(1, 2, 3),) * 2, p, True, 1, 0.0, False, False, False)[0],
                          [leaf(d, 4, 2, 5, dtype=t), leaf(d, 12, 5, dtype=t), leaf(d, 12, 3, dtype=t),
                           leaf(d, 12, dtype=t), leaf(d, 12, dtype=t)]),
    "gru": lambda d, t: (lambda x, *p: torch.gru(x, x.new_zeros(1, 2, 3), p, True, 1, 0.0, False, False, False)[0],
                         [leaf(d, 4, 2, 5, dtype=t), leaf(d, 9, 5, dtype=t), leaf(d, 9, 3, dtype=t),
                          leaf(d, 9, dtype=t), leaf(d, 9, dtype=t)]),
    "foreach": lambda d, t: (lambda x, y: torch._foreach_mul([x, y], [y, x])[0], [leaf(d, 3, dtype=t), leaf(d, 3, dtype=t)]),
    "abs": lambda d, t: (torch.abs, [leaf(d, 3, 4, dtype=t)]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_recorded_whole_has_eagers_gradients(name):
    torch_lazy.set_option("compile", "off")
    for dtype in DTYPES:
        def both(device):
            function, leaves = WHOLE[name](device, dtype)
            y = function(*leaves)
            first = torch.autograd.grad(y.abs().square().sum(), leaves, create_graph=True)
            return y, first, torch.autograd.grad(sum(g.abs().square().sum() for g in first), leaves, allow_unused=True)

        assert_like_eager(both, raises=None, **TOLERANCE.get(dtype, {}))
    torch_lazy.set_option("compile", "async")


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.calls.append(str(function))
        return function(*arguments, **(keywords or {}))


def test_a_mode_sees_calls_and_not_their_run(compile_mode):
    for scale in (torch.tensor(1.5), torch.tensor(2.5)):
        x = torch.ones(3, device="lazy").add_(1, alpha=2) * scale
        with Log() as log:
            torch.lazy.synchronize()
            y = x + scale
            assert y.data_ptr() != 0
        assert log.calls == ["aten.add.Tensor"]
        assert torch.equal(y.cpu(), scale.expand(3) * 4)


def test_a_mode_sees_eagers_calls():
    """Those of torch.utils.flop_counter and selective checkpoints among them."""
    def calls(device):
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 3)).to(device)
        x = torch.randn(5, 4).to(device)
        seen = []
        for _ in range(2):
            with Log() as forward:
                loss = model(x).square().mean()
            with Log() as backward:
                loss.backward()
            seen += [forward.calls, backward.calls]
        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        return seen, counter.get_total_flops()

    assert_like_eager(calls)


class Tagged(torch.Tensor):
    """A subclass that notes what it is asked."""

    seen = []

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        cls.seen.append(str(function))
        plain = pytree.tree_map(lambda t: t.inner if isinstance(t, cls) else t, (arguments, keywords or {}))
        return function(*plain[0], **plain[1])

    def __new__(cls, inner):
        tensor = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        tensor.inner = inner
        return tensor


def test_a_subclass_sees_eagers_calls():
    def calls(device):
        Tagged.seen = []
        F.linear(torch.ones(2, 4).to(device), Tagged(torch.ones(3, 4).to(device)), torch.ones(3).to(device))
        return Tagged.seen

    assert_like_eager(calls)


IN_PLACE = {
    "a sequence": lambda x, layer: layer(layer(x).relu()),
    "a residual": lambda x, layer: x + layer(x).tanh() + x * x,
    "a value used thrice": lambda x, layer: (lambda y: y.sin() + y.cos() * y)(layer(x)),
    "views": lambda x, layer: (lambda y: y[:, :2].sum() + y[:, 2:].exp().sum() + y.t()[0].sin().sum())(layer(x)),
    "expanded": lambda x, layer: layer(x) + x.sum(0) + layer.bias.sum(),
    "a tied weight": lambda x, layer: layer(x) @ layer.weight,
    "a list": lambda x, layer: torch.cat(torch.unbind(layer(x), 1)[:3]) * 2,
}


def additions_of_backward(name, device):
    """(all, in place) of each of three steps; the latter two add to gradients that are there."""
    torch.manual_seed(0)
    layer, x = nn.Linear(4, 4).to(device), leaf(device, 3, 4)
    IN_PLACE[name](x, layer).sum().backward()
    x.grad = layer.weight.grad = layer.bias.grad = None
    for _ in range(3):
        torch_lazy.sync()  # so that no run is counted
        loss = IN_PLACE[name](x, layer).sum()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            loss.backward()
        counts = {event.key: event.count for event in profile.key_averages()}
        in_place = counts.get("aten::add_", 0)
        yield counts.get("aten::add", 0) + in_place, in_place


@pytest.mark.parametrize("name", IN_PLACE)
def test_gradients_are_added_in_place_where_eager_does(name):
    """Autograd decides by who else holds a gradient and its storage. The gradients of a whole `linear` are no views, so
    that some are added in place which eager adds anew."""
    for (total, in_place), (eagers_total, eagers_in_place) in zip(
            additions_of_backward(name, "lazy"), additions_of_backward(name, "cpu"), strict=True):
        assert total == eagers_total and in_place >= eagers_in_place


def test_a_transform_does_not_meet_pending_calls(compile_mode):
    x = torch.ones(3, device="lazy") * 2

    def f(y):
        torch.lazy.synchronize()
        return (y * x).sum()

    assert torch.func.vmap(torch.func.grad(f))(torch.ones(4, 3, device="lazy")).tolist() == [[2.0] * 3] * 4
