# SPDX-License-Identifier: Apache-2.0
"""After an error the device goes on: wherever memory is refused, a call fails or a compiler dies."""

import itertools
import resource

import pytest
import torch
import torch_lazy

from child import in_child
from loops import network, update


def train(steps=3):
    """A net, and the losses of its training."""
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        x = torch.full((16, 8), 0.1 * (step + 1), device="lazy")
        losses.append(update(net, optimizer, x + x.mT.contiguous().mT.cumsum(1)).item())
    return net, losses


def _fail_everywhere(cache):
    """Trains with one fault, at each place where there can be one; returns how many times an error was raised, and its types."""
    ops = torch.ops.torch_lazy
    _, reference = train()
    raised, kinds = 0, set()
    for place in itertools.count():
        torch_lazy.set_option("cache_dir", f"{cache}/{place}")
        untouched = torch.arange(6.0, device="lazy") * 2
        computed = torch.arange(6.0, device="lazy").add_(1)
        computed.tolist()
        ops._fail_after(place)
        net = None
        try:
            net, losses = train()
        except RuntimeError as error:
            raised += 1
            kinds.add(type(error).__name__)
        pending = ops._fault_pending()
        ops._fail_after(-1)
        if net is not None:
            torch.testing.assert_close(losses, reference, rtol=1e-5, atol=0)
            assert all(torch.isfinite(value).all() for value in net.parameters())
        assert computed.tolist() == [1, 2, 3, 4, 5, 6]
        # What was recorded before the fault, by the thread that met it, has happened or has failed with it.
        try:
            assert untouched.tolist() == [0, 2, 4, 6, 8, 10]
        except RuntimeError as error:
            assert net is None and "has no value" in str(error)
        torch.testing.assert_close(train()[1], reference, rtol=1e-5, atol=0)
        if pending:
            return place, raised, sorted(kinds)


@pytest.mark.parametrize("mode", ["off", "sync"])
def test_one_fault_at_every_place(mode, tmp_path):
    places, raised, kinds = in_child(_fail_everywhere, str(tmp_path), compile=mode, errors=str(tmp_path / "errors"))
    assert places > 20
    assert 0 < raised <= places
    assert kinds == ["OutOfMemoryError", "RuntimeError"]


def _ask_for_too_much(rounds):
    texts = set()
    kept = torch.arange(4.0, device="lazy")
    for _ in range(rounds):
        with pytest.raises(torch.OutOfMemoryError) as error:
            (torch.ones(10**13, device="lazy") * 2)[:3].tolist()
        texts.add(str(error.value).split("\n")[0])
    assert kept.tolist() == [0, 1, 2, 3]
    return texts, torch_lazy.metrics()["bytes_live"]


@pytest.mark.parametrize("mode", ["off", "sync"])
def test_out_of_memory(mode):
    texts, once = in_child(_ask_for_too_much, 1, compile=mode)
    assert texts == {"lazy: out of memory. Tried to allocate 40000000000000 bytes"}
    texts, often = in_child(_ask_for_too_much, 100, compile=mode)
    assert len(texts) == 1
    assert often == once


def _limit_memory():
    train()
    size = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (size + (256 << 20), resource.RLIM_INFINITY))
    kept, held = torch.arange(4.0, device="lazy"), []
    with pytest.raises(RuntimeError, match="memory"):
        for _ in range(64):
            held.append(torch.ones(4 << 20, device="lazy") * 3)
            held[-1][0].item()
    assert len(held) > 2
    assert all(value[-1].item() == 3 for value in held[:-1])
    held.clear()
    assert kept.tolist() == [0, 1, 2, 3]
    return train()[1]


def test_a_limit_of_memory():
    assert in_child(_limit_memory, compile="off") == in_child(lambda: train()[1], compile="off")
