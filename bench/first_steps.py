# SPDX-License-Identifier: Apache-2.0
"""The first steps of models' training, each loss read: without kernels on disk, and in a second process, beside eager's.

    bench/first_steps.py [MODEL ...] [--size full] [--seconds 12] [--dtype float32] [--kit build] [--json FILE]

Models are rows of bench/models. Each runs three times, in processes of its own: eager, lazy with an empty cache, lazy with the
cache that the former left. A line per model:

    kernels    compiled by the first of the two
    beyond s   seconds from the first step's begin until steps are as fast as they ever get, less eager's
    compiled s seconds until the last trace that ran op by op
    meanwhile  the median of the steps before that over eager's median
    99 %       the 99th percentile of all cold steps over eager's own, the first step left out in both
    second     the step of the second process from which on it is fast; steps that were run op by op there
    speed      eager's median over lazy's, the last quarter of the steps

A step is fast where the medians of the five and of the 25 steps from it on are at most 1/0.95 of the last quarter's.
LAZY_BENCH_EAGER=cuda compares with CUDA.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parent.parent / "tools"))
from figures.fresh import run, use  # noqa: E402
from kit_environment import kit_environment  # noqa: E402

EAGER = os.environ.get("LAZY_BENCH_EAGER", "cpu")
MODELS = ["bert", "t5", "llama", "swin_tiny_patch4_window7_224", "efficientnet_b0", "vit_tiny_patch16_224", "dcgan", "lstm_lm", "unet"]
COUNTS = ["traces_interpreted", "kernels_compiled", "compiles_pending", "compile_seconds", "trace_misses"]
FAST = 0.95  # of the steady speed
WINDOWS = 5, 25  # steps whose medians say how fast the first of them is: a few are fast by chance
LEAST_STEPS = 40


def train(device, model, size, dtype, seconds):
    """Seconds of each step, waited for, and what was counted after each."""
    import torch

    from models import named, training

    metrics, _ = use(device)
    step = training(named(model), device, size, getattr(torch, dtype))
    times, counts = [], {name: [] for name in COUNTS}
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(times) < LEAST_STEPS:
        start = time.perf_counter()
        step(len(times)).item()
        times.append(time.perf_counter() - start)
        seen = metrics()
        for name, values in counts.items():
            values.append(seen.get(name, 0))
    return {"times": times, **counts}


def steady(times):
    """Seconds of a step in the last quarter."""
    return statistics.median(times[-max(WINDOWS[0], len(times) // 4):])


def first_fast(times):
    """The first step from which on steps are fast."""
    limit = steady(times) / FAST
    return next(k for k in range(len(times)) if all(statistics.median(times[k:k + window]) <= limit for window in WINDOWS))


def last_by_aten(run):
    """The last step that ran a trace op by op."""
    counts = run["traces_interpreted"]
    return counts.index(counts[-1])


def percentile(times, part):
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def row(eager, cold, second):
    """The line's figures."""
    slow = first_fast(cold["times"])
    own = first_fast(eager["times"])
    median = statistics.median(eager["times"])
    steps = second["traces_interpreted"]
    return {
        "kernels": cold["kernels_compiled"][-1],
        "beyond s": sum(cold["times"][:slow]) - sum(eager["times"][:own]),
        "compiled s": sum(cold["times"][:last_by_aten(cold) + 1]),
        "first s": cold["times"][0] - eager["times"][0],
        "meanwhile": statistics.median(cold["times"][1:slow]) / median if slow > 1 else 1.0,
        "99 %": percentile(cold["times"][1:], 0.99) / percentile(eager["times"][1:], 0.99),
        "second": first_fast(second["times"]),
        "op by op": sum(now > before for before, now in zip([0, *steps], steps)),
        "speed": median / steady(cold["times"]),
        "eager ms": median * 1e3,
        "lazy ms": steady(cold["times"]) * 1e3,
        "second ms": steady(second["times"]) * 1e3,
        "steps": len(cold["times"]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--size", default="small", choices=["small", "full"])
    parser.add_argument("--dtype", default="bfloat16", help="of autocast")
    parser.add_argument("--seconds", type=float, default=12, help="of the cold process's steps; the others take half of it")
    parser.add_argument("--kit", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "build")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    policy = {name: os.environ[name] for name in ["OMP_WAIT_POLICY"] if name in os.environ}
    os.environ.update(kit_environment(given.kit.resolve()))
    del os.environ["OMP_WAIT_POLICY"]  # one process at a time: threads may spin as they do for users
    os.environ.update(policy)
    results, widths = {}, None
    for model in given.models:
        seen = []
        with tempfile.TemporaryDirectory() as cache:
            for device, seconds in (EAGER, given.seconds / 2), ("lazy", given.seconds), ("lazy", given.seconds / 2):
                seen.append(run(given.kit.resolve(), train, device, model, given.size, given.dtype, seconds, LAZY_CACHE_DIR=cache))
        figures = row(*seen)
        results[model] = {"figures": figures, "eager": seen[0], "cold": seen[1], "second": seen[2]}
        if widths is None:
            widths = [max(8, len(name)) for name in figures]
            print(f"{'':28}", *(f"{name:>{width}}" for name, width in zip(figures, widths)), flush=True)
        print(f"{model:28}", *(f"{value:>{width}.3g}" for value, width in zip(figures.values(), widths)), flush=True)
    if given.json:
        given.json.write_text(json.dumps(results))


if __name__ == "__main__":
    import first_steps  # under its own name, by which processes find its functions

    first_steps.main()
