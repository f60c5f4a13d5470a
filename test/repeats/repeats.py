# SPDX-License-Identifier: Apache-2.0
"""How many different results the same program gives, from run to run under changing load.

    repeats.py [PROGRAM ...] [--runs 20] [--steps 60] [--eager cpu|cuda] [--modes MODE ...] [--jobs 1] [--load 4] [--out FILE]

Each run is a process of its own. Prints a table: for each program and mode, how many results differ. Modes: `eager`, `cold` and `warm`:
deterministic algorithms, without and with kernels on disk; `usual`: eager with usual settings; `default`: the same on the device, after as
many runs as leave everything on disk, which is printed. Beside the runs there are by turns none to four processes (`--load`), each of which
takes a processor by fits and starts. Ends with 1 if the deterministic modes have more than one result between them in a program of which all
of eager's runs agree. `--out`: what each run gave, as JSON.

With --eager cuda, eager runs on a GPU. LAZY_BACKEND=stand_in tries CUDA's kernels without one.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["norms", "lengths", "evaluating", "autocast", "mlp", "resnet", "gpt", "gru", "lstm", "dropout", "branch"]
DETERMINISTIC = ("cold", "warm")
MODES = ("eager", *DETERMINISTIC, "usual", "default")
MOST_WARMING_RUNS = 12  # of the default mode
BURN = """
import random, time
while True:
    end = time.monotonic() + random.uniform(0, 0.3)
    while time.monotonic() < end: pass
    time.sleep(random.uniform(0, 0.3))
"""


class Load:
    """So many processes beside this one, while it lives."""

    def __init__(self, processes):
        self._processes = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(processes)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()


def one_run(program, device, cache, *options, load=0):
    """What one_run.py prints. `cache`: folder of kernels on disk."""
    environment = {**os.environ, "LAZY_CACHE_DIR": str(cache), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    command = [sys.executable, str(HERE / "one_run.py"), program, device, *options]
    with Load(load):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def warm_up(program, device, cache, *options):
    """Runs it until it has found all on disk, and not the kernels alone: products are tried as far as that may cost time."""
    for run in range(MOST_WARMING_RUNS):
        counts = one_run(program, device, cache, "--await-kernels", *options)["counts"]
        if counts["kernels_compiled"] == counts["compiles_pending"] == counts["undecided"] == 0:
            print(f" after {run}:", end="", flush=True)
            return
    print(f" {counts['undecided']} undecided:", end="", flush=True)


def run_all(program, mode, arguments):
    """What each run gave."""
    device = arguments.eager if mode in ("eager", "usual") else "lazy"
    options = [f"--steps={arguments.steps}", *(["--deterministic"] if mode not in ("usual", "default") else [])]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        if mode == "warm":
            one_run(program, device, folder, *options)
        elif mode == "default":
            warm_up(program, device, folder, *options)
        runs = []
        for run in range(arguments.runs):
            cache = os.path.join(folder, str(run)) if mode == "cold" else folder
            runs.append(pool.submit(one_run, program, device, cache, *options, load=run % (arguments.load + 1)))
        return [run.result() for run in runs]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="default: all")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--eager", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--jobs", type=int, default=1, help="runs beside each other")
    parser.add_argument("--load", type=int, default=4, help="most processes beside a run")
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    print(f"different results of {arguments.runs} runs\n{'program':12}" + "".join(f"{mode:>10}" for mode in arguments.modes), flush=True)
    everything, failed = {}, False
    for program in arguments.programs or PROGRAMS:
        start = time.monotonic()
        print(f"{program:12}", end="", flush=True)
        digests = {}
        everything[program] = {}
        for mode in arguments.modes:
            everything[program][mode] = run_all(program, mode, arguments)
            digests[mode] = collections.Counter(run["digest"] for run in everything[program][mode])
            print(f"{len(digests[mode]):10}", end="", flush=True)
        repeats = len(set().union(*(digests[mode] for mode in DETERMINISTIC if mode in digests))) <= 1
        owed = len(digests.get("eager", "1")) == 1
        failed |= owed and not repeats
        print(f"{time.monotonic() - start:6.0f} s", "" if repeats else "NOT THE SAME" if owed else "nor is eager the same", flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(everything, indent=1))
    sys.exit(failed)


if __name__ == "__main__":
    main()
