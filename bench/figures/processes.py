# SPDX-License-Identifier: Apache-2.0
"""Sixteen processes that start at once with one cache, in which there is nothing."""

import tempfile

from figures.fresh import Figure, finish, run, start, use

PROCESSES = 16


def train(steps):
    """The losses, and the kernels that this process has compiled."""
    import torch

    from workloads import gru
    from workloads.variant import Variant

    metrics, _ = use("lazy")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step = gru.make(Variant(device="lazy"))
    return {"losses": [step(index).item() for index in range(steps)], "kernels": metrics()["kernels_compiled"]}


def figures(build):
    with tempfile.TemporaryDirectory() as cache:
        alone = run(build, train, 4, LAZY_CACHE_DIR=cache, LAZY_COMPILE="sync")
    with tempfile.TemporaryDirectory() as cache:
        children = [start(build, train, 4, LAZY_CACHE_DIR=cache, LAZY_COMPILE="sync") for _ in range(PROCESSES)]
        together = [finish(child) for child in children]
    kernels = sum(child["kernels"] for child in together)
    yield Figure(f"kernels of {PROCESSES} processes, over those of one", kernels / alone["kernels"], "<= 1.2")
    yield Figure("processes with other losses", sum(child["losses"] != alone["losses"] for child in together), "0")
