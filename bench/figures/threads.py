# SPDX-License-Identifier: Apache-2.0
"""Eight threads, each with its own model and loop on the one device: no more unknown traces than one has."""

import tempfile

from figures.fresh import Figure, run, use

THREADS = 8


def train(threads, loops, steps):
    """Traces that were not known when so many loops, each with its own model, ran on so many threads."""
    from concurrent.futures import ThreadPoolExecutor

    import torch
    from torch import nn

    metrics, _ = use("lazy")
    torch.set_num_threads(1)

    def loop(_):
        net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to("lazy")
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for step in range(steps):
            optimizer.zero_grad()
            loss = net(torch.full((8, 16), 0.1 * (step % 5), device="lazy")).square().mean()
            loss.backward()
            optimizer.step()
            loss.item()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(loop, range(loops)))
    return metrics()["trace_misses"]


def figures(build):
    with tempfile.TemporaryDirectory() as cache:
        one, eight = (run(build, train, threads, THREADS, 20, LAZY_CACHE_DIR=cache) for threads in (1, THREADS))
    yield Figure(f"{THREADS} loops on {THREADS} threads: traces that were not known, over those of one thread", eight / one, "<= 1")
