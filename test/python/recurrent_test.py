# SPDX-License-Identifier: Apache-2.0
"""Recurrent nets on the CPU against eager's: LSTMs by the same kernel of oneDNN, to the last bit; others by cells."""
import contextlib

import pytest
import torch
import torch_lazy
from torch import nn

STEPS = 4  # at once, recorded, planned, run by the plan


def trained(device, kind, options, dtype=torch.float32, packed=False, autocast=False, train=True):
    """Outputs, states and gradients of some steps, and a random number after them."""
    torch.manual_seed(1)
    net = getattr(nn, kind)(5, 6, **options).to(dtype).to(device)
    length, batch, states = 7, 3, net.num_layers * (2 if net.bidirectional else 1)
    found = []
    for step in range(STEPS):
        torch.manual_seed(step)
        x = torch.randn(*((batch, length) if net.batch_first else (length, batch)), 5).to(dtype).to(device).requires_grad_(train)
        h, c = (torch.randn(states, batch, width).to(dtype).to(device).requires_grad_(train) for width in (net.proj_size or 6, 6))
        given = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([7, 4, 2]), batch_first=net.batch_first) if packed else x
        precision = torch.autocast(device, torch.bfloat16) if autocast else contextlib.nullcontext()
        with torch.set_grad_enabled(train), precision:
            y, states_after = net(given, (h, c) if kind == "LSTM" else h)
            results = [y.data if packed else y, *(states_after if kind == "LSTM" else (states_after,))]
        if train:
            sum(result.float().square().mean() for result in results).backward()
            results += [x.grad, h.grad, *([c.grad] if kind == "LSTM" else []), *(p.grad for p in net.parameters())]
            net.zero_grad()
        found += [result.detach().cpu() for result in results]
    return found + [torch.rand(2)]


def assert_same(lazy, eager, **tolerance):
    for mine, its in zip(lazy, eager, strict=True):
        assert (mine.shape, mine.dtype) == (its.shape, its.dtype)
        torch.testing.assert_close(mine, its, **(tolerance or {"rtol": 0, "atol": 0}))


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"bidirectional": True}, {"bias": False}, {"batch_first": True},
                                     {"num_layers": 3, "dropout": 0.4, "bidirectional": True}], ids=str)
def test_lstms_are_eagers_to_the_bit(options, train):
    assert_same(trained("lazy", "LSTM", options, train=train), trained("cpu", "LSTM", options, train=train))


@pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="eager takes no kernel of oneDNN's for bfloat16 on this processor")
@pytest.mark.parametrize("how", [{"dtype": torch.bfloat16}, {"autocast": True}], ids=str)
def test_lstms_of_bfloat16_are_eagers_to_the_bit(how):
    assert_same(trained("lazy", "LSTM", {"num_layers": 2}, **how), trained("cpu", "LSTM", {"num_layers": 2}, **how))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_asks_onednn_for_no_type_that_it_lacks(dtype):
    """Eager's check sees the type before autocast, so it raises instead: of float16 always, of bfloat16 on a processor with AVX2 alone."""
    def train(**autocast):
        torch.manual_seed(1)
        net, x = nn.LSTM(5, 6, 2).to("lazy"), torch.randn(7, 3, 5).to("lazy")
        with torch.autocast("lazy", **autocast):
            y, _ = net(x)
        y.float().square().mean().backward()
        return [y.detach().float().cpu(), *(p.grad.cpu() for p in net.parameters())]

    for mine, precise in zip(train(dtype=dtype), train(enabled=False), strict=True):
        torch.testing.assert_close(mine, precise, rtol=0.05, atol=2e-3)


@pytest.mark.parametrize("kind, options, how", [
    ("GRU", {"num_layers": 2, "bidirectional": True}, {}),
    ("RNN", {"nonlinearity": "relu"}, {}),
    ("LSTM", {"proj_size": 2}, {}),
    ("LSTM", {"num_layers": 2}, {"packed": True}),
    ("GRU", {"bidirectional": True}, {"packed": True}),
    ("LSTM", {}, {"dtype": torch.double}),
], ids=str)
def test_what_eager_runs_by_cells_is_run_by_cells(kind, options, how):
    assert_same(trained("lazy", kind, options, **how), trained("cpu", kind, options, **how), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_states_are_new_tensors_that_can_be_detached_in_place(kind, num_layers):
    """Truncated backpropagation: a program carries its states from part to part, and cuts their history."""

    def losses(device):
        torch.manual_seed(0)
        net, x = getattr(nn, kind)(3, 4, num_layers).to(device), torch.randn(6, 5, 2, 3).to(device)
        optimizer, states, values = torch.optim.SGD(net.parameters(), lr=0.1), None, []
        for part in x:
            y, states = net(part, states)
            for state in states if kind == "LSTM" else (states,):
                assert not state._is_view()
                state.detach_()
            optimizer.zero_grad()
            y.square().sum().backward()
            optimizer.step()
            values.append(y.detach().sum().item())
        return torch.tensor(values)

    torch.testing.assert_close(losses("lazy"), losses("cpu"), rtol=1e-5, atol=1e-6)


def test_lstms_are_recorded():
    trained("lazy", "LSTM", {"num_layers": 2})
    torch_lazy.reset_metrics()
    trained("lazy", "LSTM", {"num_layers": 2})
    assert "aten::mkldnn_rnn_layer" not in torch_lazy.metrics()["calls_immediate_by_op"]


def second_derivative(device):
    torch.manual_seed(0)
    net, x = nn.LSTM(3, 4).to(device), torch.randn(5, 2, 3).to(device).requires_grad_()
    (gradient,) = torch.autograd.grad(net(x)[0].square().sum(), x, create_graph=True)
    gradient.square().sum().backward()
    return [gradient.detach().cpu(), x.grad.cpu(), *(p.grad.cpu() for p in net.parameters())]


def test_second_derivatives_are_eagers():
    assert_same(second_derivative("lazy"), second_derivative("cpu"), rtol=1e-5, atol=1e-6)


def test_forward_mode_goes_by_cells():
    torch.manual_seed(0)
    net, x, t = nn.LSTM(3, 4).to("lazy"), torch.randn(5, 2, 3).to("lazy"), torch.randn(5, 2, 3).to("lazy")
    y, tangent = torch.func.jvp(lambda x: net(x)[0], (x,), (t,))
    near = (net(x + 1e-3 * t)[0] - net(x - 1e-3 * t)[0]) / 2e-3
    torch.testing.assert_close(tangent, near, rtol=1e-2, atol=1e-4)


def test_a_graph_that_is_kept_gives_the_same_twice():
    torch.manual_seed(0)
    net, x = nn.LSTM(3, 4).to("lazy"), torch.randn(5, 2, 3).to("lazy")
    loss = net(x)[0].square().sum()
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in net.parameters()]
    loss.backward()
    for p, gradient in zip(net.parameters(), once, strict=True):
        torch.testing.assert_close(p.grad, 2 * gradient, rtol=0, atol=0)


def test_errors_are_eagers():
    net = nn.LSTM(3, 4)
    for device in ("cpu", "lazy"):
        net.to(device)
        with pytest.raises(RuntimeError, match="Expected hidden\\[0\\] size"):
            net(torch.zeros(5, 2, 3, device=device), (torch.zeros(1, 3, 4, device=device), torch.zeros(1, 3, 4, device=device)))
