# SPDX-License-Identifier: Apache-2.0
"""Loops as people write them, none of which says where a step ends: a device that cuts by itself must find it.

A loop is a generator that yields after each of its steps. Inputs change from step to step.
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss


def batch(step, rows=16, columns=8):
    return torch.full((rows, columns), 0.1 * (step % 7), device="lazy") + torch.arange(columns, device="lazy") * 0.01


def network(columns=8, width=12, outputs=4):
    generator = torch.Generator().manual_seed(width)
    net = nn.Sequential(nn.Linear(columns, width), nn.Tanh(), nn.Linear(width, outputs))
    with torch.no_grad():
        for value in net.parameters():
            value.normal_(0.0, 0.3, generator=generator)
    return net.to("lazy")


def update(net, optimizer, x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def training(steps, read_every):
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        loss = update(net, optimizer, batch(step))
        if read_every and step % read_every == 0:
            loss.item()
        yield loss


def inference(steps, read_every):
    net = network()
    with torch.no_grad():
        for step in range(steps):
            result = net(batch(step)).argmax(1)
            if read_every and step % read_every == 0:
                result.tolist()
            yield result


def gradient_accumulation(steps, parts=4):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(parts):
            (net(batch(step + part)).square().mean() / parts).backward()
        optimizer.step()
        yield None


def two_models_in_turn(steps):
    """A GAN: each step updates the one that judges, then the one that makes."""
    maker, judge = network(outputs=8), network(outputs=1, width=20)
    optimizers = torch.optim.Adam(maker.parameters(), lr=1e-3), torch.optim.Adam(judge.parameters(), lr=1e-3)
    for step in range(steps):
        noise = batch(step + 3)
        made = maker(noise)
        optimizers[1].zero_grad()
        (judge(batch(step)).mean() - judge(made.detach()).mean()).square().backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        judge(made).mean().backward()
        optimizers[0].step()
        yield None


def evaluation_now_and_then(steps, every=5, batches=3):
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        loss = update(net, optimizer, batch(step))
        if step % every == every - 1:
            net.eval()
            with torch.no_grad():
                total = sum((net(batch(k)).argmax(1) == 0).sum() for k in range(batches))
            net.train()
            total.item()
        yield loss


def nested(steps, inner=3):
    """An inner loop that fits a small vector, as a step of an outer one that fits a network."""
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    for step in range(steps):
        x = batch(step)
        code = torch.zeros(4, device="lazy", requires_grad=True)
        for _ in range(inner):
            (gradient,) = torch.autograd.grad(mse_loss(net(x), code.expand(16, 4)), code)
            code = (code - 0.1 * gradient).detach().requires_grad_()
        optimizer.zero_grad()
        mse_loss(net(x), code.detach().expand(16, 4)).backward()
        optimizer.step()
        yield None


def a_log_that_holds(steps, held=7):
    """A library keeps the last losses and reads them late."""
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    log = []
    for step in range(steps):
        log.append(update(net, optimizer, batch(step)))
        if len(log) == held:
            sum(loss.item() for loss in log)
            log.clear()
        yield None


def moving_average(steps):
    """A copy of the weights follows them; both are read at times."""
    net, average = network(), network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step in range(steps):
        loss = update(net, optimizer, batch(step))
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), net.parameters(), strict=True):
                slow.lerp_(fast, 0.01)
        if step % 4 == 0:
            loss.item()
        yield loss


def clipping(steps):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    for step in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(net(batch(step)), torch.full((16,), step % 4, device="lazy"))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        yield loss
