# SPDX-License-Identifier: Apache-2.0
"""Ratios to eager: eager, tuned eager and lazy (and torch.compile) in turns, workload by workload.

    bench/run [WORKLOAD ...] [--rounds 15] [--compile] [--cold-rounds 5] [--json FILE] [--no-lazy]
              [--build FOLDER]

Lazy runs with compile=sync, except in the cold rows, which take the defaults. Milliseconds are medians over the
rounds; a ratio is the median of the rounds' own ratios, taken side by side. Above 1 is faster than eager.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

from catalog import COLD, COLD_TARGET, FIRST_TARGET, WORKLOADS
from rounds import HERE, cold, ratio, steady
from workloads.variant import VARIANTS

NAME_WIDTH = 36


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="default: all; 'record', 'cold' and 'first' are workloads too")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cold-rounds", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="a column for torch.compile")
    parser.add_argument("--no-lazy", action="store_true", help="eager's rows alone, without the library")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def variants_of(workload, arguments):
    names = ["eager", "eager+alloc"]
    if not workload.is_cpp:
        names += ["eager+foreach", "eager+fused"] if workload.has_optimizer else []
        names += ["compile"] if arguments.compile else []
    return names + ([] if arguments.no_lazy else ["lazy"])


def print_row(title, cells):
    print(f"{title:{NAME_WIDTH}}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


def cell(results, name):
    if name not in results:
        return "-"
    if isinstance(results[name], Exception):
        return "failed"
    milliseconds = f"{statistics.median(results[name]) * 1e3:.2f}"
    return milliseconds if name == "eager" else f"{milliseconds} ({ratio(results, name):.2f})"


def measure_steady(workload, arguments, cache, columns):
    environments = {
        name: {**VARIANTS[name].environment, "LAZY_COMPILE": "sync", "LAZY_CACHE_DIR": str(cache)}
        for name in variants_of(workload, arguments)
    }
    results = steady(arguments.build, workload, environments, arguments.rounds)
    for name, result in results.items():
        if isinstance(result, Exception):
            print(f"{name}: {result}")
    cells = [cell(results, name) for name in columns] + [f">= {workload.target:.2f}"]
    if arguments.compile:
        has_both = all(isinstance(results.get(name), list) for name in ("compile", "lazy"))
        cells += [f"{ratio(results, 'lazy', 'compile'):.2f}" if has_both else "-"]
        cells += [f">= {workload.compile_target:.2f}" if workload.compile_target else "-"]
    print_row(workload.title, cells)
    return {name: str(times) if isinstance(times, Exception) else times for name, times in results.items()}


def print_means(results):
    """Of the ratios of all that ran: geometric mean and least, over eager and over torch.compile."""
    for base in "eager", "compile":
        ratios = [
            ratio(times, "lazy", base) for name, times in results.items()
            if not name.startswith(("cold", "first")) and all(isinstance(times.get(variant), list) for variant in (base, "lazy"))
        ]
        if len(ratios) > 1:
            print_row(f"over {base}: geometric mean, worst", [f"{statistics.geometric_mean(ratios):.2f}", f"{min(ratios):.2f}"])


def measure_cold(workload, arguments, cache):
    def empty_cache():
        shutil.rmtree(cache, ignore_errors=True)

    environments = {name: {"LAZY_CACHE_DIR": str(cache)} for name in ("eager", "lazy")}
    try:
        results = cold(arguments.build, workload, environments, arguments.cold_rounds, empty_cache)
    except RuntimeError as error:
        print(error)
        return str(error)
    eager, lazy = (f"{statistics.median(results[name]) * 1e3:.2f}" for name in ("eager", "lazy"))
    print_row(workload.title, [eager, lazy, f"{1 / ratio(results, 'lazy'):.2f}", f"<= {COLD_TARGET}"])
    return results


def measure_first(workload, arguments, folder):
    """The first result, from empty caches; eager's beside it."""

    def empty_caches():
        shutil.rmtree(folder, ignore_errors=True)

    caches = {"LAZY_CACHE_DIR": str(folder / "lazy"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    environments = {name: caches for name in ("eager", "compile", "lazy")}
    results = cold(arguments.build, workload, environments, 1, empty_caches, steps=1)
    seconds = {name: times[0] for name, times in results.items()}
    cells = [f"{seconds[name] * 1e3:.1f}" for name in environments]
    print_row(workload.title, [*cells, f"{seconds['lazy'] / seconds['compile']:.3f}", f"<= {FIRST_TARGET}"])
    return results


def main():
    arguments = parse_arguments()
    known = [workload.name for workload in WORKLOADS]
    chosen = arguments.workloads or [*known, "cold", "record"]
    if unknown := set(chosen) - {*known, "cold", "first", "record"}:
        raise SystemExit(f"unknown {sorted(unknown)}; there are {known}, cold, first, record")
    results = {}
    measured = {name for workload in WORKLOADS if workload.name in chosen for name in variants_of(workload, arguments)}
    columns = [name for name in VARIANTS if name in measured]
    with tempfile.TemporaryDirectory() as folder:
        cache = pathlib.Path(folder) / "cache"
        if set(chosen) & set(known):
            over_compile = ["lazy/compile", "target"] if arguments.compile else []
            print_row("ms a step (times faster than eager)", [*columns, "target", *over_compile])
        for workload in WORKLOADS:
            if workload.name in chosen:
                results[workload.name] = measure_steady(workload, arguments, cache, columns)
        if "cold" in chosen and not arguments.no_lazy:
            print()
            print_row("first two steps, ms each, cold", ["eager", "lazy", "lazy/eager", "target"])
            for workload in WORKLOADS:
                if workload.name in COLD:
                    results["cold " + workload.name] = measure_cold(workload, arguments, cache)
        if "first" in chosen:
            print_row("first result, ms, cold", ["eager", "compile", "lazy", "lazy/compile", "target"])
            for workload in WORKLOADS:
                if not workload.is_cpp:
                    results["first " + workload.name] = measure_first(workload, arguments, cache)
    print_means(results)
    if "record" in chosen:
        print("\nrecording: ns a call; lazy, without computing, then with", flush=True)
        without = {"LAZY_BACKEND": "null", "LAZY_COMPILE": "sync"}
        runs = [("null", {}), ("cpu", {})] if arguments.no_lazy else [("null", {}), ("lazy", without), ("lazy", {}), ("cpu", {})]
        for device, environment in runs:
            subprocess.run([arguments.build / "bin" / "record_bench", device], env={**os.environ, **environment}, check=False)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
