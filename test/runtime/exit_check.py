# SPDX-License-Identifier: Apache-2.0
"""Programs that end in every way with work pending: they end as on the eager device, at once, and leave nothing.

    exit_check.py [--build build] [--cpp 60] [--python 60] [--backends cpu,stand_in] [--eager cpu] [--seed 0] [--jobs 2] [--spawn]

Runs so many C++ and Python programs (exit_programs.py: each has work and a way to end), all kinds in turn. Prints how many
ended with another status than the same program on the eager device, how much later after they had said that they would end,
and the processes and folders that are left ten seconds after the last. Fails if there is a status, a process or a folder.
Programs that crash on the eager device (C++ that uses CUDA in a handler of exit), by SIGABRT or SIGSEGV by turns, are counted apart.
"""
import argparse
import collections
import itertools
import os
import pathlib
import random
import statistics
import sys
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import torch_lazy  # noqa: F401
from exit_programs import CPP_WAYS, PYTHON_WAYS, WORKS, PythonServer, processes_left, run_alone, serve

# Takes as long as a compiler, but no processor: what it makes cannot be loaded, which is for the process to find out.
SLOW_COMPILER = """#!/bin/sh
sleep 0.7
while [ "$1" != -o ]; do shift; done
echo no library > "$2"
"""
REAL_COMPILER_EVERY = 8
CRASHES = {134, 139}  # SIGABRT, SIGSEGV
PROGRAMS = pathlib.Path(__file__).with_name("exit_programs.py")
SECONDS_LEFT = 10


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve()
    parser.add_argument("--build", type=pathlib.Path, default=here.parents[2] / "build")
    parser.add_argument("--cpp", type=int, default=60)
    parser.add_argument("--python", type=int, default=60)
    parser.add_argument("--backends", default="cpu,stand_in")
    parser.add_argument("--eager", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="programs side by side, but for forked ones")
    parser.add_argument("--spawn", action="store_true", help="each Python program in a Python of its own, instead of a fork of one")
    return parser.parse_args()


class Runs:
    """The programs of both languages, in folders of their own."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.cpp = arguments.build / "bin" / "exit_program"
        self.server = PythonServer()
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        compiler = folder / "compiler"
        compiler.write_text(SLOW_COMPILER)
        compiler.chmod(0o700)

    def environment(self, **more):
        return {**os.environ, "TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", **more}

    def lazy_environment(self, number, backend, work, way=""):
        if not work.cold:
            # What works at exit, and is to wait for its kernels, waits for them there.
            mode = "sync" if number % 3 == 0 and way != "works_at_exit" else "async"
            return self.environment(LAZY_BACKEND=backend, LAZY_CACHE_DIR=str(self.folder / "warm"), LAZY_COMPILE=mode)
        more = {} if number % REAL_COMPILER_EVERY == 0 else {"LAZY_COMPILER": str(self.folder / "compiler")}
        return self.environment(LAZY_BACKEND=backend, LAZY_CACHE_DIR=str(self.folder / f"cold-{number}"), **more)

    def run(self, language, environment, device, work, way):
        if language == "C++":
            return run_alone([str(self.cpp)], environment, device, work, way)
        if self.arguments.spawn:
            return run_alone([sys.executable, str(PROGRAMS)], environment, device, work, way)
        return self.server.run(environment, device, work, way)

    def warm(self):
        for backend, work in itertools.product(self.arguments.backends.split(","), WORKS.values()):
            if not work.cold:
                self.run("C++", {**self.lazy_environment(0, backend, work), "LAZY_COMPILE": "sync"}, "lazy", work, "return")


def programs(language, count, arguments):
    """`count` of (backend, work's name, way): each once, then each again, in random order."""
    ways = CPP_WAYS if language == "C++" else PYTHON_WAYS
    all_of_them = list(itertools.product(arguments.backends.split(","), WORKS, ways))
    generator = random.Random(arguments.seed)
    chosen = []
    while len(chosen) < count:
        chosen += generator.sample(all_of_them, len(all_of_them))
    return chosen[:count]


def check(language, count, arguments, runs):
    """Runs them; returns (lines about those that ended differently, delays of lazy programs, delays of eager ones)."""
    chosen = programs(language, count, arguments)
    kinds = sorted({(work, way) for _, work, way in chosen})

    def run_eager(kind):
        return runs.run(language, runs.environment(), arguments.eager, WORKS[kind[0]], kind[1])

    def run_lazy(numbered):
        number, (backend, work, way) = numbered
        return runs.run(language, runs.lazy_environment(number, backend, WORKS[work], way), "lazy", WORKS[work], way)

    def run_all(function, cases):
        if language == "Python" and not arguments.spawn:
            return [function(case) for case in cases]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            return list(pool.map(function, cases))

    eager = dict(zip(kinds, run_all(run_eager, kinds)))
    lazy = run_all(run_lazy, list(enumerate(chosen)))
    different, delays, crashes = [], collections.defaultdict(list), collections.Counter()
    for (backend, work, way), outcome in zip(chosen, lazy):
        expected = eager[work, way]
        if expected.status in CRASHES and way != "abort":
            crashes["crashed, too" if outcome.status in CRASHES else "did not"] += 1
        elif outcome.status != expected.status:
            different.append(f"{language}, {backend}, {work}, {way}: status {outcome.status}, eager {expected.status}: "
                             f"{outcome.errors[-400:]}")
        if outcome.delay_s >= 0:
            delays[way].append(outcome)
    if crashes:
        print(f"{language}: of {crashes.total()} programs that crash on the eager device, ours: {dict(crashes)}")
    return different, delays, {way: [o for (_, w), o in eager.items() if w == way and o.delay_s >= 0] for way in delays}


def show_delays(language, delays, eager):
    """Delays of both devices, as seen on the clock and in processor time, which other programs of the machine do not lengthen."""
    for what, of in (("clock", lambda outcome: 1e3 * outcome.delay_s), ("processor", lambda outcome: 1e3 * outcome.cpu_s)):
        later = []
        for way, outcomes in sorted(delays.items()):
            ours, theirs = sorted(map(of, outcomes)), sorted(map(of, eager[way]))
            print(f"  {language} {way}: {len(ours)} programs, {what}, ms from the last word to the end: median {statistics.median(ours):.0f}, "
                  f"largest {ours[-1]:.0f}; eager {statistics.median(theirs):.0f}, {theirs[-1]:.0f}")
            later += [ms - statistics.median(theirs) for ms in ours]
        if later:
            later.sort()
            print(f"{language}: ends later than eager's median by, {what}: median {statistics.median(later):.0f} ms, "
                  f"9 of 10 at most {later[len(later) * 9 // 10]:.0f} ms, largest {later[-1]:.0f} ms")


def main():
    arguments = parse_arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="exits-"))
    failed = check_all(arguments, Runs(arguments, folder))  # the server's children leave it by an exception
    shutil.rmtree(folder)
    return 1 if failed else 0


def check_all(arguments, runs):
    failed = False
    runs.warm()
    for language, count in (("C++", arguments.cpp), ("Python", arguments.python)):
        different, delays, eager = check(language, count, arguments, runs)
        print(f"{language}: {count} programs, {len(different)} with another exit status than eager's")
        print("\n".join(different[:20]))
        show_delays(language, delays, eager)
        sys.stdout.flush()
        failed = failed or bool(different)
    time.sleep(SECONDS_LEFT)
    processes, left = processes_left(runs.temporary), list(runs.temporary.iterdir())
    unfinished = list(runs.folder.rglob("*.tmp"))
    kept = len([path for path in runs.folder.glob("cold-*/*/*") if path.suffix in (".so", ".cubin")])
    print(f"left {SECONDS_LEFT} s later: {len(processes)} processes, {len(left)} folders, {len(unfinished)} unfinished files; "
          f"{kept} batches of kernels were kept")
    for line in [*processes, *left, *unfinished][:20]:
        print(f"  {line}")
    return failed or bool(processes or left or unfinished)


if __name__ == "__main__":
    sys.exit(serve(main))
