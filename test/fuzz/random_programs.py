# SPDX-License-Identifier: Apache-2.0
"""Random programs on device lazy, against eager execution on the CPU or a GPU.

    random_programs.py [--mode interpreted|compiled|at_once] [--programs 1000] [--seed 0] [--lines 40] [--jobs 2] [--limit SECONDS]
                       [--eager cpu]

Each program runs three times, then from storages that are ready, from larger ones, and in two threads at once; tensors, values,
errors and aliases must be eager's after each.
Prints a failing program, made as small as it gets, as a script, and "N of M passed"; exits with 1 unless all have passed.
"""

import argparse
import pathlib
import sys
import threading
import time
import warnings

import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / "ops"))
import pool  # noqa: E402
from difference import difference  # noqa: E402
from generate import Generator  # noqa: E402
from program import Invalid, has_race, ready, roomy, run, tolerances  # noqa: E402
from shrink import shrink  # noqa: E402

COMPILE_OPTION = {"interpreted": "off", "compiled": "sync", "at_once": "off"}
RUNS = 3
IN_THREADS = 0.2  # of the programs; these draw no random numbers, since threads share the generator


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=COMPILE_OPTION, default="interpreted")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others count on from there")
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120, help="seconds a batch of programs may take")
    parser.add_argument("--eager", choices=["cpu", "cuda"], default="cpu", help="what to compare with")
    return parser.parse_args()


def start_worker(mode):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import torch_lazy

    torch_lazy.set_option("compile", COMPILE_OPTION[mode])
    torch_lazy.set_option("disable", "" if mode == "at_once" else "at_once")


def in_threads(seed):
    return seed % round(1 / IN_THREADS) == 0


def program_of(seed, num_lines):
    return Generator(seed, num_lines=num_lines, without=["random", "random rounding"] if in_threads(seed) else []).program()


def failure_of(lines, threads, eager):
    """What is unlike eager execution, or None."""
    try:
        tolerance_of = tolerances(lines)
    except Invalid:
        return None
    if eager == "cuda" and has_race(lines):
        return None
    expected = run(lines, eager)  # not the one that was watched: looking at a tensor may change what autograd does next
    for _ in range(RUNS):
        text = difference(run(lines, "lazy"), expected, tolerance_of)
        if text is not None:
            return text
    for made in (ready, roomy):
        text = difference(run(lines, "lazy", made=made), run(lines, eager, made=made), tolerance_of)
        if text is not None:
            return f"{made.__name__}: {text}"
    if not threads:
        return None
    machines = [None, None]
    team = [threading.Thread(target=lambda k=k: machines.__setitem__(k, run(lines, "lazy"))) for k in range(2)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    return next((f"in threads: {text}" for machine in machines if (text := difference(machine, expected, tolerance_of))), None)


def first_failure(seeds, num_lines, eager):
    """(seed, failure) of the first that fails, or None."""
    for seed in seeds:
        text = failure_of(program_of(seed, num_lines), in_threads(seed), eager)
        if text is not None:
            return seed, text
    return False


def verdict(lines, threads, arguments):
    """The failure of one program in a process of its own, crashes and hangs included."""
    ((_, result, crash, _),) = pool.run(
        [lines], start=lambda: start_worker(arguments.mode), work=lambda job: failure_of(job, threads, arguments.eager) or "",
        num_workers=1, limit_s=30)
    return crash or result


def report(seed, arguments):
    lines = program_of(seed, arguments.lines)
    print(f"seed {seed}", flush=True)
    if not verdict(lines, in_threads(seed), arguments):
        print("  passes alone: it takes what other programs of its batch have left", flush=True)
        return
    small = shrink(lines, lambda part: bool(verdict(part, in_threads(seed), arguments)))
    print(f"  as small as it gets: {verdict(small, in_threads(seed), arguments)}")
    print("\n".join(f"    {line.text}" for line in small), flush=True)


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    started = time.monotonic()
    batch = 20
    jobs = [range(seed, min(seed + batch, arguments.seed + arguments.programs))
            for seed in range(arguments.seed, arguments.seed + arguments.programs, batch)]
    passed = 0
    failures = []

    def work(seeds):
        return first_failure(seeds, arguments.lines, arguments.eager)

    # What follows a failure in its batch is run as a batch of its own. A batch that crashes or hangs counts as one failure.
    while jobs:
        again = []
        for seeds, result, crash, _ in pool.run(jobs, start=lambda: start_worker(arguments.mode), work=work,
                                                num_workers=arguments.jobs, limit_s=arguments.limit):
            if crash is not None:
                failures.append((seeds[0], f"its batch of {len(seeds)}: {crash}"))
            elif result:
                failures.append(result)
                passed += result[0] - seeds[0]
                if result[0] + 1 < seeds.stop:
                    again.append(range(result[0] + 1, seeds.stop))
            else:
                passed += len(seeds)
        jobs = again
    for seed, text in failures:
        print(f"FAILED seed {seed}: {text}", flush=True)
    for seed, _ in failures[:10]:
        report(seed, arguments)
    print(f"random programs {arguments.mode}: {passed} of {arguments.programs} passed "
          f"({time.monotonic() - started:.0f} s)")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
