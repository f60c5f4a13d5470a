# SPDX-License-Identifier: Apache-2.0
"""Ratios to eager CUDA and to torch.compile, in its default mode and with CUDA graphs, workload by workload.

    bench/cuda_bench.py [--only NAME,...] [--kit build/cuda_kit] [--out build/cuda_logs] [--seconds 540]
                        [--rounds 9] [--no-compile] [--list]

Works from a kit (tools/cuda_kit.sh), without a compiler of its own. The variants of a row run in turns, in processes of
their own, which wait for the GPU at a block's end; a row's variants, and those of the next rows, warm up beside each other.
Milliseconds a step, and ratios, above 1 where lazy is faster, are of each variant's fastest round; in brackets the medians' ratio. For a processor that
other guests of the host use, too, is by turns one and a half times as slow (docs/measurements.md), and a variant that is bound by the host is as slow as the one that it is on. "Replayed" is torch.compile with our backend. Beside them: what
lazy replayed and launched a step, and the speed of rows that memory bounds beside a copy's. "Floor" is what the host takes on a
device whose kernels return at once: Python, autograd and the dispatcher, of which lazy does without some. Rows whose loss is read
are also compared with lazy where it is not. A variant that takes longer than
its limit is killed; a row for which no time is left is not run. Ends with 1 if any of these happened; what a variant
printed is in bench_cuda.log in the folder, the times of all rounds in bench_cuda.json. LAZY_BENCH_EAGER=cpu LAZY_BACKEND=stand_in tries the program itself, without a GPU.
"""

import argparse
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
from typing import NamedTuple

os.environ.setdefault("LAZY_BENCH_EAGER", "cuda")

from catalog import Workload  # noqa: E402
from cuda_catalog import BANDWIDTH_TARGET, COLD, COLD_MORE_S, COLD_OVER_COMPILE, UNREAD_TARGET, WORKLOADS  # noqa: E402
from rounds import HERE, Process  # noqa: E402

sys.path.append(str(HERE.parent / "tools"))
from kit_environment import kit_environment  # noqa: E402

TOGETHER = 3  # rows that warm up at a time; of those that fill a large part of the GPU's memory, one
ANSWER_S = 20  # that a block may take once it is warm
COPY = Workload("a copy", "copy", 0, block=20)
COMPILED = ["compile", "compile+graphs"]
REPLAYED = "lazy+compile"
UNREAD = "unread"  # lazy, in a row whose loss is read, without reading it


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=["*"], help="names or patterns; 'cold' is one, too")
    parser.add_argument("--kit", type=pathlib.Path, default=HERE.parent / "build" / "cuda_kit", help="or a build folder")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "build" / "cuda_logs")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


class Row:
    """A workload's variants, each warm in a process of its own, or failed."""

    def __init__(self, workload, arguments, environment, pool, deadline):
        """Variants have the workload's limit until they are warm, or until the deadline."""
        self.workload = workload
        if not workload.waits:
            environment = {**environment, "LAZY_COMPILE": "async"}
        self.deadline = min(deadline, time.monotonic() + workload.limit_s)
        names = ["eager", *(COMPILED if workload.compiles and not workload.is_cpp and not arguments.no_compile else []), "lazy"]
        names += [REPLAYED] if workload.replays else []
        names += [] if workload.arrays or not workload.has_floor else ["floor"]
        jobs = [(name, workload, workload.graphs if name == "compile+graphs" else name) for name in names]
        jobs += [("copy", COPY, "eager")] if workload.arrays else []
        jobs += [(UNREAD, dataclasses.replace(workload, reads="never"), "lazy")] if workload.reads != "never" else []
        self.starting = {key: pool.submit(self._warm, key, of, variant, arguments, environment) for key, of, variant in jobs}

    def _warm(self, key, workload, variant, arguments, environment):
        with open(arguments.logs / f"{self.workload.name}_{key}.log", "w") as log:
            process = Process(arguments.kit, workload, variant, environment, self._left_s(), log)
        try:
            for _ in range(workload.warm_blocks):
                process.limit_s = self._left_s()
                process.run(workload.block)
        except Exception:
            process.kill()
            raise
        process.limit_s = ANSWER_S
        return process

    def _left_s(self):
        return max(0.1, self.deadline - time.monotonic())

    def measure(self, rounds):
        """{variant: seconds a step, round by round, or its error}, and lazy's counts a step."""
        processes, results = {}, {}
        for key, job in self.starting.items():
            try:
                processes[key], results[key] = job.result(), []
            except (RuntimeError, ValueError, OSError) as error:
                results[key] = error
        before = processes["lazy"].counts() if "lazy" in processes else {}
        for _ in range(rounds):
            for key, process in list(processes.items()):
                try:
                    results[key].append(process.run((COPY if key == "copy" else self.workload).block))
                except (RuntimeError, ValueError, OSError) as error:
                    results[key] = error
                    del processes[key]
        after = processes["lazy"].counts() if "lazy" in processes else {}
        for process in processes.values():
            process.kill()
        steps = rounds * self.workload.block
        return results, {name: (after[name] - before[name]) / steps for name in after}

    def stop(self):
        for job in self.starting.values():
            try:
                job.result().kill()
            except (RuntimeError, ValueError, OSError):
                pass


def has(results, name):
    return isinstance(results.get(name), list)


def milliseconds(results, name):
    if name not in results:
        return "-"
    return f"{min(results[name]) * 1e3:.3f}" if has(results, name) else "failed"


class Figure(NamedTuple):
    """How many times faster than what, by the fastest rounds and by the medians."""

    what: str
    value: float
    median: float
    target: float
    floor: float | None  # what a device would reach that costs the host nothing but PyTorch itself; None: unknown

    @property
    def is_reached(self):
        return self.value >= self.target

    def __str__(self):
        by_floor = self.floor is not None and self.floor < self.target
        mark = "" if self.is_reached else f" MISSED, as by the host's floor, {self.floor:.2f}" if by_floor else " MISSED"
        return f"{self.what} {self.value:.2f} [{self.median:.2f}]{mark} (>= {self.target:g})"


def figures(workload, results):
    """Of a row's Figures those that its results allow."""
    found = []

    def over(name, base, of):
        return of(results[base]) / of(results[name])

    def add(what, name, base, target, scale=1.0):
        floor = over("floor", base, min) if name == "lazy" and has(results, "floor") else None
        found.append(Figure(what, scale * over(name, base, min), scale * over(name, base, statistics.median), target, floor))

    if not has(results, "lazy"):
        return found
    if has(results, "eager"):
        add("eager", "lazy", "eager", workload.target)
    compiled = [name for name in COMPILED if has(results, name)]
    if compiled:
        best = min(compiled, key=lambda name: min(results[name]))
        add("compile", "lazy", best, workload.compile_target)
        if has(results, REPLAYED):
            add("compile, replayed", REPLAYED, best, workload.replays)
    if has(results, UNREAD):
        add("unread", "lazy", UNREAD, UNREAD_TARGET if workload.reads in ("after", "tenth") else 0.0)
    if has(results, "copy"):
        add("copy", "lazy", "copy", BANDWIDTH_TARGET, workload.arrays / 2)
    return found


def print_row(workload, results, counts):
    cells = "".join(f"{milliseconds(results, name):>9}" for name in ["eager", *COMPILED, "lazy", REPLAYED, "floor"])
    ratios = "  ".join(map(str, figures(workload, results)))
    ran = "  ".join(f"{value:.3g} {name.split('_')[1]}" for name, value in counts.items())
    print(f"{workload.title:34}{cells}  {ratios}  {ran}", flush=True)
    for name, result in results.items():
        if not isinstance(result, list):
            print(f"    {name}: {str(result)[-160:]}", flush=True)


def run_rows(chosen, arguments, environment, deadline):
    """{name: results}; None for a row that was not run."""
    everything, waiting, warm = {}, list(chosen), []
    with concurrent.futures.ThreadPoolExecutor(4 * TOGETHER + 4) as pool:
        while waiting or warm:
            if not warm and time.monotonic() < deadline:
                # Nothing is measured meanwhile: what compiles would take its processors.
                count = 2 * TOGETHER if waiting[0].is_cpp else TOGETHER
                count = next((place for place, workload in enumerate(waiting[:count]) if workload.is_large), count) or 1
                warm = [Row(workload, arguments, environment, pool, deadline) for workload in waiting[:count]]
                concurrent.futures.wait([job for row in warm for job in row.starting.values()])
                waiting = waiting[count:]
            if time.monotonic() >= deadline:
                break
            row = warm.pop(0)
            results, counts = row.measure(arguments.rounds)
            print_row(row.workload, results, counts)
            everything[row.workload.name] = {**{name: times if isinstance(times, list) else str(times) for name, times in results.items()},
                                             "counts": counts, "figures": figures(row.workload, results)}
        for row in warm:
            row.stop()
    return everything | {workload.name: None for workload in chosen if workload.name not in everything}


def cold(workload, arguments, environment, folder, steps=2):
    """{variant: seconds of the first two steps}, with empty caches, one after the other; PyTorch is loaded before."""
    seconds = {}
    for name in ["eager", *([] if arguments.no_compile else ["compile"]), "lazy"]:
        shutil.rmtree(folder, ignore_errors=True)
        caches = {"LAZY_CACHE_DIR": str(folder / "lazy"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "LAZY_COMPILE": "async"}
        try:
            with open(arguments.logs / f"cold_{workload.name}_{name}.log", "w") as log:
                process = Process(arguments.kit, workload, name, {**environment, **caches}, workload.limit_s, log)
                seconds[name] = steps * process.run(steps)
                process.kill()
        except (RuntimeError, ValueError) as error:
            print(f"    cold {workload.name}, {name}: {str(error)[-160:]}")
    return seconds


def run_cold(arguments, environment, folder):
    everything = {}
    for workload in WORKLOADS:
        if workload.name in COLD:
            seconds = everything["cold " + workload.name] = cold(workload, arguments, environment, folder)
            cells = "  ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
            more = seconds["lazy"] - seconds["eager"] if {"lazy", "eager"} <= set(seconds) else float("nan")
            over = seconds["lazy"] / seconds["compile"] if {"lazy", "compile"} <= set(seconds) else float("nan")
            marks = ["" if more <= COLD_MORE_S else " MISSED", "" if not over > COLD_OVER_COMPILE else " MISSED"]
            print(f"first two steps, cold: {workload.title:12} {cells}  lazy-eager {more:.2f} s{marks[0]} (<= {COLD_MORE_S})  "
                  f"lazy/compile {over:.3f}{marks[1]} (<= {COLD_OVER_COMPILE})", flush=True)
    return everything


def main():
    arguments = parse_arguments()
    deadline = time.monotonic() + arguments.seconds
    is_chosen = {name: any(fnmatch.fnmatchcase(name, pattern) for pattern in arguments.only)
                 for name in [*(workload.name for workload in WORKLOADS), "cold"]}
    chosen = [workload for workload in WORKLOADS if is_chosen[workload.name]]
    if arguments.list or not any(is_chosen.values()):
        print(*is_chosen)
        sys.exit(not any(is_chosen.values()))
    arguments.kit, arguments.out = arguments.kit.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        arguments.logs = pathlib.Path(folder) / "logs"
        arguments.logs.mkdir()
        environment = kit_environment(arguments.kit, LAZY_COMPILE="sync", LAZY_CACHE_DIR=f"{folder}/lazy",
                                      TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor", TORCHINDUCTOR_COMPILE_THREADS=4, OMP_NUM_THREADS=4)
        print(f"{'ms a step':34}{'eager':>9}{'compile':>9}{'+graphs':>9}{'lazy':>9}{'replayed':>9}{'floor':>9}  times faster than; a step's replays and launches")
        quick = [workload for workload in chosen if workload.is_cpp]
        results = run_rows(quick, arguments, environment, deadline)
        if is_chosen["cold"]:
            results |= run_cold(arguments, environment, pathlib.Path(folder) / "cold")
        results |= run_rows([workload for workload in chosen if not workload.is_cpp], arguments, environment, deadline)
        logs = {log.stem: log.read_text(errors="replace") for log in sorted(arguments.logs.iterdir())}
    (arguments.out / "bench_cuda.log").write_text("".join(f"==== {name}\n{text}" for name, text in logs.items() if text))
    (arguments.out / "bench_cuda.json").write_text(json.dumps(results, indent=1))
    rows = [results[workload.name] for workload in chosen]
    found = [figure for row in rows if row for figure in row["figures"]]
    failed = [name for name, row in results.items() if row is None or any(isinstance(value, str) for value in row.values())]
    print(f"bench-cuda: {sum(figure.is_reached for figure in found)} of {len(found)} targets reached; "
          f"failed or not run: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
