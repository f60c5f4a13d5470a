# SPDX-License-Identifier: Apache-2.0
"""100 pairs of batch and length of a transformer in training: kernels, unknown traces, and steps that are held up."""

import random
import statistics
import tempfile
import time

from figures.fresh import Figure, run, use

PAIRS = 100
AGAIN = 5  # times that the same sizes are seen again, to know what each takes
ROUNDS = 3  # of which the median counts: other work on the machine makes one step in hundreds late


def pairs():
    every = [(batch, length) for batch in range(2, 18) for length in range(8, 40)]
    return random.Random(0).sample(every, PAIRS)


def train(device):
    """Seconds of each step, sizes in turn and then again; traces that were not known and kernels, after each."""
    import torch

    from workloads.gpt import Gpt, loss_of

    metrics, _ = use(device)
    torch.manual_seed(0)
    net = Gpt(vocabulary=256, length=40, width=64, heads=4, layers=2).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    times, counts = [], []
    for batch, length in pairs() * (1 + AGAIN):
        ids = torch.randint(256, (batch, length + 1)).to(device)
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(net, ids)
        loss.backward()
        optimizer.step()
        loss.item()
        times.append(time.perf_counter() - start)
        seen = metrics()
        counts.append([seen.get("trace_misses", 0), seen.get("kernels_compiled", 0)])
    return times, counts


def held_up(times):
    """The longest of the first steps over what its size takes later, as a multiple of what its neighbours' are."""
    again = [min(times[index::PAIRS][1:]) for index in range(PAIRS)]
    slow = [first / later for first, later in zip(times, again)]
    return max(slow[i] / statistics.median(slow[max(3, i - 5):i + 6]) for i in range(3, PAIRS)), statistics.median(slow[3:])


def rounds(build, device, **environment):
    """Of several runs the times and counts of the last, and the medians of what held_up says."""
    seen = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            times, counts = run(build, train, device, LAZY_CACHE_DIR=cache, **environment)
        seen.append(held_up(times))
    return times, counts, *(statistics.median(values) for values in zip(*seen))


def figures(build):
    for mode in "sync", "async":
        times, counts, worst, usual = rounds(build, "lazy", LAZY_COMPILE=mode)
        yield Figure(f"compile={mode}: kernels after those of the first two sizes", counts[-1][1] - counts[1][1], "few")
        yield Figure(f"compile={mode}: traces that were not known after the first two sizes", counts[-1][0] - counts[1][0], "few")
        yield Figure(f"compile={mode}: slowest step of a new size after the third, over its neighbours", worst, "<= 1.5")
        yield Figure(f"compile={mode}: a step of a new size, over the same size again", usual)
    eager, _, worst, usual = rounds(build, "cpu")
    yield Figure("eager: slowest step of a new size after the third, over its neighbours", worst)
    yield Figure("eager: a step of a new size, over the same size again", usual)
    later = slice(PAIRS, None)
    yield Figure("eager's time over lazy's, sizes seen before", sum(eager[later]) / sum(times[later]))
    yield Figure("eager's time over lazy's, new sizes", sum(eager[3:PAIRS]) / sum(times[3:PAIRS]))
