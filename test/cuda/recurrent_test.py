# SPDX-License-Identifier: Apache-2.0
"""Recurrent nets are eager CUDA's, cuDNN's, bit for bit: outputs, states, gradients, and random numbers of dropout between layers."""

import pytest
import torch
import torch_lazy  # noqa: F401
from torch import nn

from devices import EAGER

STEPS = 5  # at once, recorded, planned, captured, replayed
LENGTHS = torch.tensor([7, 7, 6, 4, 2, 1])
WIDTH, HIDDEN = 24, 40


def _trained(device, kind, options, dtype=torch.float32, packed=False, autocast=False, train=True):
    torch.manual_seed(1)
    net = getattr(nn, kind)(WIDTH, HIDDEN, **options).to(dtype).to(device).train(train)
    states = net.num_layers * (2 if net.bidirectional else 1)
    torch.manual_seed(3)
    found = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        shape = (len(LENGTHS), 7, WIDTH) if net.batch_first else (7, len(LENGTHS), WIDTH)
        x, h, c = (torch.randn(size, generator=generator).to(dtype).to(device).requires_grad_(train) for size in (
            shape, (states, len(LENGTHS), net.proj_size or HIDDEN), (states, len(LENGTHS), HIDDEN)))
        given = nn.utils.rnn.pack_padded_sequence(x, LENGTHS, batch_first=net.batch_first) if packed else x
        with torch.set_grad_enabled(train), torch.autocast(device, torch.bfloat16, enabled=autocast):
            y, after = net(given, (h, c) if kind == "LSTM" else h)
        results = [y.data if packed else y, *(after if kind == "LSTM" else (after,))]
        if train:
            sum(result.float().square().sum() for result in results).backward()
            results += [x.grad, h.grad, *([c.grad] if kind == "LSTM" else []), *(p.grad for p in net.parameters())]
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter -= 0.01 * parameter.grad
                    parameter.grad = None
        found += [result.detach().cpu() for result in results]
    return found + [torch.rand(3, device=device).cpu()]


def _assert_equal(mine, eager):
    for a, e in zip(mine, eager, strict=True):
        assert (a.dtype, a.shape, a.stride()) == (e.dtype, e.shape, e.stride())
        torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True)


OPTIONS = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "num_layers": 2}, {"batch_first": True}, {"num_layers": 3, "dropout": 0.4}]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", [{}, {"packed": True}, {"autocast": True}, {"train": False}, {"dtype": torch.float16}, {"dtype": torch.bfloat16},
                                 {"dtype": torch.float64}], ids=str)
def test_nets_are_eagers(kind, options, how):
    _assert_equal(_trained("lazy", kind, options, **how), _trained(EAGER, kind, options, **how))


@pytest.mark.parametrize("packed", [False, True])
def test_projections_are_eagers(packed):
    options = {"proj_size": 16, "num_layers": 2, "bidirectional": True}
    _assert_equal(_trained("lazy", "LSTM", options, packed=packed), _trained(EAGER, "LSTM", options, packed=packed))


def test_precise_sums_are_eagers():
    before = torch.backends.cudnn.allow_tf32
    try:
        for allowed in (False, True):
            torch.backends.cudnn.allow_tf32 = allowed
            _assert_equal(_trained("lazy", "LSTM", {}), _trained(EAGER, "LSTM", {}))
    finally:
        torch.backends.cudnn.allow_tf32 = before


def test_seeding_begins_the_numbers_of_dropout_anew():
    def numbers(device):
        torch.manual_seed(0)
        net, x = nn.LSTM(WIDTH, HIDDEN, 2, dropout=0.5).to(device), torch.ones(3, 2, WIDTH).to(device)
        found = []
        for seed in (1, None, 1, 2):
            if seed is not None:
                torch.manual_seed(seed)
            found.append(net(nn.functional.dropout(x, 0.3))[0].detach().cpu())
        return found

    mine, eager = numbers("lazy"), numbers(EAGER)
    _assert_equal(mine, eager)
    assert mine[0].equal(mine[2]) and not mine[0].equal(mine[1])


def test_without_cudnn_cells_run():
    with torch.backends.cudnn.flags(enabled=False):
        mine, eager = _trained("lazy", "LSTM", {}), _trained(EAGER, "LSTM", {})
    for a, e in zip(mine, eager, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5)
