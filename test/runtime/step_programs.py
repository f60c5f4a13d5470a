# SPDX-License-Identifier: Apache-2.0
"""Loops whose storages are read, written, replaced, held and dropped at all times: nothing of how they are run may show."""

import gc
import random
import threading

import numpy
import torch
from torch import nn

STEPS = 40


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, 3)).to("lazy")


def batch_of(step):
    return torch.sin(torch.arange(8 * 24.0).view(8, 24) * (step + 1)), torch.full((8, 3), step / STEPS)


def _update(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def train(read=lambda step, net, losses: None):
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for step in range(STEPS):
        x, y = batch_of(step)
        losses.append(_update(net, optimizer, x.to("lazy"), y.to("lazy")))
        read(step, net, losses)
    return [loss.item() for loss in losses], [value.tolist() for value in net.parameters()]


def plain():
    return train()


def reads_now_and_then():
    seen = []

    def read(step, net, losses):
        if step % 5 == 3:
            seen.append(losses[-1 - step % 2].item())
        if step % 7 == 4:
            seen.append(net[0].bias.tolist())

    return train(read), seen


def writes_parameters():
    def write(step, net, losses):
        with torch.no_grad():
            if step % 3 == 1:
                net[2].bias.copy_(torch.full((3,), 0.5 / (step + 1)))  # from the host
            if step % 4 == 2:
                net[0].bias.data = net[0].bias.data * 0.5
            if step % 10 == 9:
                net[0].weight.detach().cpu().numpy()[:] = 7  # a copy

    return train(write)


def fills_its_input():
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    x, y = torch.zeros(8, 24, device="lazy"), torch.zeros(8, 3, device="lazy")
    losses = []
    for step in range(STEPS):
        for there, new in zip((x, y), batch_of(step), strict=True):
            there.copy_(new)
        losses.append(_update(net, optimizer, x, y))
    return [loss.item() for loss in losses]


def drops_what_it_made():
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


def random_loops():
    return [_random_loop(seed) for seed in range(6)]


def two_threads():
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


ALL = [plain, reads_now_and_then, writes_parameters, fills_its_input, drops_what_it_made, random_loops, two_threads]
