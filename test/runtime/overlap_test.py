# SPDX-License-Identifier: Apache-2.0
"""Short traces run on a thread of ours while the program records the next: nothing but the time may tell."""

import gc
import os
import random
import subprocess
import sys
import threading

import numpy
import pytest
import torch
import torch_lazy
from torch import nn

from child import in_child

STEPS = 40


def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, 3)).to("lazy")


def _batch(step):
    return torch.sin(torch.arange(8 * 24.0).view(8, 24) * (step + 1)), torch.full((8, 3), step / STEPS)


def _update(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def _train(read=lambda step, net, losses: None):
    net = _net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for step in range(STEPS):
        x, y = _batch(step)
        losses.append(_update(net, optimizer, x.to("lazy"), y.to("lazy")))
        read(step, net, losses)
    return [loss.item() for loss in losses], [value.tolist() for value in net.parameters()]


def _plain():
    return _train()


def _reads_now_and_then():
    seen = []

    def read(step, net, losses):
        if step % 5 == 3:
            seen.append(losses[-1 - step % 2].item())
        if step % 7 == 4:
            seen.append(net[0].bias.tolist())

    return _train(read), seen


def _writes_parameters():
    def write(step, net, losses):
        with torch.no_grad():
            if step % 3 == 1:
                net[2].bias.copy_(torch.full((3,), 0.5 / (step + 1)))  # from the host
            if step % 4 == 2:
                net[0].bias.data = net[0].bias.data * 0.5
            if step % 10 == 9:
                net[0].weight.detach().cpu().numpy()[:] = 7  # a copy

    return _train(write)


def _fills_its_input():
    net = _net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    x, y = torch.zeros(8, 24, device="lazy"), torch.zeros(8, 3, device="lazy")
    losses = []
    for step in range(STEPS):
        for there, new in zip((x, y), _batch(step), strict=True):
            there.copy_(new)
        losses.append(_update(net, optimizer, x, y))
    return [loss.item() for loss in losses]


def _drops_what_it_made():
    """Storages die while the trace that fills them, or the next one that reads them, waits for its turn."""
    state, total = torch.ones(500, device="lazy"), torch.zeros((), device="lazy")
    for step in range(STEPS):
        new = state * 0.5 + torch.from_numpy(numpy.full(500, step, dtype="float32")).to("lazy")
        total.add_(new.sum())
        state = new - new.mean()
        del new
        if step % 8 == 5:
            gc.collect()
    return total.item(), state.tolist()


def _random_loop(seed):
    """The same few calls at every step, on storages that are updated, replaced and dropped; now and then something else."""
    choose = random.Random(seed)
    body = [(choose.choice(["update", "replace", "view", "product", "scratch"]), choose.randrange(4), choose.randrange(4)) for _ in range(6)]
    body.append(("update", 0, 1))
    generator = torch.Generator().manual_seed(seed)
    state = [torch.rand(8, 8, generator=generator).to("lazy") for _ in range(4)]
    seen, held = [], []
    for step in range(STEPS):
        for what, a, b in body:
            if what == "update":
                state[a].mul_(0.5).add_(state[b] * 0.25)
            elif what == "replace":
                state[a] = torch.tanh(state[b] + state[a])
            elif what == "view":
                state[a][1:3, :4].copy_(state[b].t()[:2, 2:6] * 0.5)
            elif what == "product":
                state[a] = torch.mm(state[a], state[b]) / 8
            else:
                state[a].add_((state[b] + step).sin().mean() * 0.125)
        held.append(state[step % 4])
        event = choose.randrange(12)
        if event == 0:
            seen.append(state[choose.randrange(4)].tolist())
        elif event == 1:
            state[choose.randrange(4)].copy_(torch.rand(8, 8, generator=generator))
        elif event == 2:
            seen.append(held.pop(choose.randrange(len(held))).sum().item())
        elif event == 3:
            state[choose.randrange(4)] = torch.rand(8, 8, generator=generator).to("lazy")
        elif event == 4:
            held.clear()
        elif event == 5:
            seen.append(int(torch.nonzero(state[choose.randrange(4)] > 0.4).shape[0]))
    return seen, [value.tolist() for value in state + held]


def _random_loops():
    return [_random_loop(seed) for seed in range(6)]


def _two_threads():
    results = [None, None]
    shared = torch.zeros(16, device="lazy")
    lock = threading.Lock()

    def work(number):
        state = torch.full((16,), number + 1.0, device="lazy")
        for _ in range(STEPS):
            state.mul_(0.75).add_(1)
            with lock:
                shared.add_(state * 0 + 1)
        results[number] = state.tolist()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, shared.tolist()


def _run(program):
    torch.set_num_threads(2)
    results = [program(), program()]
    metrics = torch_lazy.metrics()
    return results, metrics["traces_ahead"], metrics["traces_run"]


@pytest.mark.parametrize(
    "program",
    [_plain, _reads_now_and_then, _writes_parameters, _fills_its_input, _drops_what_it_made, _random_loops, _two_threads],
)
def test_what_it_computes(program):
    expected, ahead, _ = in_child(_run, program, compile="sync", overlap="0")
    assert ahead == 0
    results, ahead, run = in_child(_run, program, compile="sync")
    assert results == expected
    assert STEPS / 2 < ahead < run
    results, _, _ = in_child(_run, program, compile="async")
    torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-4)


def _count(overlap):
    torch_lazy.set_option("overlap", overlap)
    torch.set_num_threads(2)
    _train()
    torch_lazy.reset_metrics()
    _train()
    metrics = torch_lazy.metrics()
    return {name: metrics[name] for name in ("calls_total", "kernel_launches", "library_calls", "traces_run", "trace_misses")}


def _nothing():
    torch.set_num_threads(2)
    for _ in range(5):
        torch_lazy.sync()
        assert (torch.ones(3, device="lazy") + 1).tolist() == [2] * 3
        torch_lazy.sync()


def test_a_wait_for_nothing():
    in_child(_nothing, compile="sync")


def _peak(overlap):
    torch_lazy.set_option("overlap", overlap)
    torch.set_num_threads(2)
    _train()
    torch_lazy.reset_metrics()
    before = torch_lazy.metrics()["bytes_live"]
    _train()
    return torch_lazy.metrics()["bytes_peak"] - before


def test_memory_is_one_batch_more_at_most():
    x, y = _batch(0)
    batch = x.nbytes + y.nbytes + 2 * 64  # in blocks of 64 bytes
    assert in_child(_peak, "1", compile="sync") <= in_child(_peak, "0", compile="sync") + batch


def test_counts_do_not_tell():
    assert in_child(_count, "1", compile="sync") == in_child(_count, "0", compile="sync")


def _fail_in_the_middle(place):
    """A fault in some run that nobody waits for: it is raised at a later call, and nothing is silently old."""
    torch.set_num_threads(2)

    def steps(state, count):
        for _ in range(count):
            state.add_(1)
            held.append(state * 2)

    held = []
    state = torch.zeros(3000, device="lazy")
    steps(state, 12)
    torch.ops.torch_lazy._fail_after(place)
    raised = False
    try:
        steps(state, 12)
        assert state[0].item() == 24
    except RuntimeError:
        raised = True
    torch.ops.torch_lazy._fail_after(-1)
    for k, value in enumerate(held):  # each is right, or says that it is not there
        try:
            assert value[7].item() == 2 * k + 2
        except RuntimeError as error:
            assert raised and "has no value" in str(error)
    other = torch.zeros(3000, device="lazy")
    steps(other, 12)
    assert other.tolist() == [12] * 3000
    assert held[-1].tolist() == [24] * 3000
    return raised, torch_lazy.metrics()["traces_ahead"]


def test_a_fault_is_raised_later():
    results = [in_child(_fail_in_the_middle, place, compile="sync") for place in range(6)]
    assert any(raised for raised, _ in results)
    assert sum(ahead > 12 for _, ahead in results) >= 4, results


PROGRAM = """
import os, sys, torch, torch_lazy
torch.set_num_threads(2)
x = torch.ones(4096, device="lazy")
for step in range(200):
    x.mul_(0.5).add_(1)
    if step == 100 and sys.argv[1] == "fork":
        child = os.fork()
        if child == 0:
            del x  # a storage of the parent's
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
if sys.argv[1] == "exit":
    sys.exit(5)
if sys.argv[1] == "raise":
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize(("how", "code"), [("exit", 5), ("end", 0), ("fork", 0), ("raise", -2)])
def test_ends_of_processes(how, code):
    environment = {**os.environ, "LAZY_COMPILE": "sync"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], env=environment, capture_output=True, timeout=100)
    assert done.returncode == code, done.stderr
