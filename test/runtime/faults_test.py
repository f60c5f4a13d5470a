# SPDX-License-Identifier: Apache-2.0
"""After an error the device goes on: wherever memory is refused, a call fails or a compiler dies."""

import itertools
import os
import random
import resource
import signal
import time

import faults  # before torch_lazy
import pytest
import torch
import torch_lazy

from child import CONTEXT, Child, in_child
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


def _fail_everywhere():
    """Trains with one fault, at each place where there can be one; returns how many times an error was raised, and its types."""
    _, reference = train()
    raised, kinds = 0, set()
    for place in itertools.count():
        untouched = torch.arange(6.0, device="lazy") * 2
        computed = torch.arange(6.0, device="lazy").add_(1)
        computed.tolist()
        faults.fail_after(place)
        net = None
        try:
            net, losses = train()
        except RuntimeError as error:
            raised += 1
            kinds.add(type(error).__name__)
        pending = faults.fault_pending()
        faults.fail_after(-1)
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
    places, raised, kinds = in_child(_fail_everywhere, compile=mode, cache_dir=str(tmp_path / "cache"), errors=str(tmp_path / "errors"))
    assert places > 20
    assert 0 < raised <= places
    assert set(kinds) - {"AcceleratorError"} == {"OutOfMemoryError", "RuntimeError"}


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
    (text,) = texts
    assert text.split(" (aten::")[0] == "lazy: out of memory. Tried to allocate 40000000000000 bytes"
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


def _be_interrupted(times, ready):
    """Works until it has been interrupted so often; none of PyTorch's contexts, which an interrupt may leave without undoing."""
    reference = train()[1]
    x, w = torch.linspace(-1, 1, 24, device="lazy").view(4, 6), torch.full((6, 3), 0.1, device="lazy", requires_grad=True)
    kept, counter, steps = x * 2, torch.zeros((), device="lazy"), 0
    for interrupt in range(times):
        size = 3 + interrupt % 4
        try:
            ready.send(interrupt)
            while True:
                loss = torch.tanh(x[:, :size] @ w[:size]).square().sum()
                (gradient,) = torch.autograd.grad(loss, w)
                counter.add_(gradient.isfinite().all())
                steps += 1
                if steps % 3 == 0:
                    assert loss.item() > 0
        except KeyboardInterrupt:
            pass
    assert steps <= counter.item() <= steps + times
    assert kept.tolist() == [[2 * number for number in row] for row in x.tolist()]
    torch.testing.assert_close(train()[1], reference, rtol=1e-5, atol=0)


@pytest.mark.parametrize("mode", ["off", "async", "sync"])
def test_interrupts(mode, tmp_path):
    times = 40
    ready, theirs = CONTEXT.Pipe(duplex=False)
    child = Child(_be_interrupted, times, theirs, compile=mode, cache_dir=str(tmp_path))
    theirs.close()
    for interrupt in range(times):
        while not ready.poll(20):  # one that comes while Python runs a finalizer is dropped
            os.kill(child.process.pid, signal.SIGINT)
        assert ready.recv() == interrupt
        time.sleep(random.Random(interrupt).uniform(0, 0.02))
        os.kill(child.process.pid, signal.SIGINT)
    child.result()
