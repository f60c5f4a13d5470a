# SPDX-License-Identifier: Apache-2.0
"""A GPT's training where no kernel is on disk, and in a second process, where all are."""

import statistics
import tempfile
import time

from figures.fresh import Figure, run, use

STEPS = 100
ROUNDS = 3


def train(device, workload, steps):
    """Seconds of each step, waited for; after each, seconds since the start and traces run op by op."""
    import importlib

    import torch

    from workloads.variant import Variant

    metrics, _ = use(device)
    torch.manual_seed(0)
    step = importlib.import_module(f"workloads.{workload}").make(Variant(device=device))
    began = time.perf_counter()
    times, states = [], []
    for index in range(steps):
        start = time.perf_counter()
        step(index).item()
        now = time.perf_counter()
        times.append(now - start)
        states.append([now - began, metrics().get("traces_interpreted", 0)])
    return {"times": times, "states": states, "kernels": metrics().get("kernels_compiled", 0)}


def seconds_to_kernels(states):
    """Until the last trace that ran op by op."""
    last = states[-1][1]
    return next(seconds for seconds, interpreted in states if interpreted == last)


def figures(build):
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            eager = run(build, train, "cpu", "gpt", STEPS)["times"]
            cold = run(build, train, "lazy", "gpt", STEPS, LAZY_CACHE_DIR=cache)
            warm = run(build, train, "lazy", "gpt", 12, LAZY_CACHE_DIR=cache, LAZY_COMPILE="sync")
        usual = statistics.median(eager)
        rounds.append([
            cold["times"][0] / eager[0], max(cold["times"]) / usual, max(cold["times"][1:]) / usual, seconds_to_kernels(cold["states"]),
            statistics.median(cold["times"][-20:]) / usual, warm["kernels"],
            (sum(warm["times"][:2]) - 2 * statistics.median(warm["times"][4:])) * 1e3,
        ])
    titles = [
        ("first step, over eager's first", "<= 1.1"), ("slowest of the first 100, over eager's median", "<= 1.5"),
        ("slowest of those but the first, over eager's median", "<= 1.5"),
        ("seconds until all kernels are in place", "<= 10"), ("last steps, over eager's median", "<= 1"),
        ("second process: kernels compiled", "0"), ("second process: ms that the first two steps take longer", "<= 200"),
    ]
    for (title, target), *values in zip(titles, *rounds):
        yield Figure(title, statistics.median(values), target)
