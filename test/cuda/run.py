# SPDX-License-Identifier: Apache-2.0
"""All tests that need a GPU, from a kit (tools/cuda_kit.sh) and the checkout, without a compiler.

    run.py [PATTERN ...] [--kit build/cuda_kit] [--out build/cuda_logs] [--seconds 580] [--samples 12] [--list]

Runs the parts of parts.py whose names match a pattern ("op_db*", "programs*"), beside each other as far as there are
processors. A part that takes longer than its limit is killed and has failed; one for which no time is left is not run,
which counts as failed too. What a part found is printed at its end; whole logs go to test_cuda.log in the folder, one after
the other. Ends with a summary, and with 1 unless all have passed. LAZY_TEST_EAGER=cpu LAZY_BACKEND=stand_in tries the runner
without a GPU, where what asks for CUDA itself fails.
"""

import argparse
import fnmatch
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import torch
from parts import TEST, parts

sys.path.append(str(TEST.parent / "tools"))
from kit_environment import kit_environment  # noqa: E402

MIN_SECONDS = 15  # with less left, a part is not begun
LINES_PASSED, LINES_FAILED, WIDTH = 4, 8, 160  # of a part in the summary


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--kit", type=pathlib.Path, default=TEST.parent / "build" / "cuda_kit")
    parser.add_argument("--out", type=pathlib.Path, default=TEST.parent / "build" / "cuda_logs")
    parser.add_argument("--seconds", type=float, default=580, help="for all parts together")
    parser.add_argument("--samples", type=int, default=12, help="of each op of op_db")
    parser.add_argument("--processors", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


class Run:
    """A part under way, in a process group of its own."""

    def __init__(self, part, environment, folder, limit_s):
        self.part, self.limit_s, self.started = part, limit_s, time.monotonic()
        self.log = folder / (re.sub(r"\W+", "_", part.name) + ".log")
        self.outcome = None
        command = [word.replace("{seconds}", f"{limit_s - 8:.0f}") for word in part.command]  # time to report
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                          cwd=TEST.parent, env={**environment, **part.environment}, start_new_session=True)

    def poll(self):
        """Whether it has ended; kills it at its limit."""
        seconds = time.monotonic() - self.started
        status = self.child.poll()
        if status is None and seconds <= self.limit_s:
            return False
        self.stop()
        if status is None:
            self.outcome = f"HUNG, killed after {seconds:.0f} s"
        else:
            self.outcome = f"passed in {seconds:.0f} s" if status == 0 else f"FAILED in {seconds:.0f} s, exit code {status}"
        return True

    def stop(self):
        """Ends the whole group: what a part leaves behind would use the GPU."""
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()

    def lines(self):
        text = self.log.read_text(errors="replace").splitlines()
        chosen = [line for line in text if re.search(self.part.shows, line)]
        count = LINES_PASSED if self.outcome.startswith("passed") else LINES_FAILED
        return [line[:WIDTH] for line in (chosen or text)[-count:]]


def run_all(chosen, arguments, environment, folder):
    """{name: (outcome, lines)}. The first part that fits on the free processors comes next."""
    deadline = time.monotonic() + arguments.seconds
    waiting, under_way, results = list(chosen), [], {}
    with open(arguments.out / "test_cuda.log", "w") as whole:
        while waiting or under_way:
            left = deadline - time.monotonic()
            free = arguments.processors - sum(run.part.processors for run in under_way)
            part = next((part for part in waiting if part.processors <= free or not under_way), None)
            if part is not None:
                waiting.remove(part)
                if left < MIN_SECONDS:
                    results[part.name] = "not run: no time left", []
                    continue
                under_way.append(Run(part, environment, folder, min(part.limit_s, left)))
                continue
            time.sleep(0.2)
            for run in [run for run in under_way if run.poll()]:
                under_way.remove(run)
                results[run.part.name] = run.outcome, run.lines()
                whole.write(f"\n==== {run.part.name}: {run.outcome}\n{run.log.read_text(errors='replace')}")
                whole.flush()
                print(f"{run.part.name}: {run.outcome}", *("    " + line for line in results[run.part.name][1]), sep="\n", flush=True)
    return results


def main():
    arguments = parse_arguments()
    arguments.kit = arguments.kit.resolve()
    chosen = [part for part in parts(arguments.kit, arguments.samples, torch.cuda.device_count())
              if any(fnmatch.fnmatchcase(part.name, pattern) for pattern in arguments.patterns)]
    if arguments.list or not chosen:
        print("\n".join(f"{part.name}: at most {part.limit_s} s" for part in chosen) or "no part of that name")
        sys.exit(not chosen)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = kit_environment(arguments.kit, LAZY_CACHE_DIR=f"{folder}/cache")
        results = run_all(chosen, arguments, environment, pathlib.Path(folder))
    print("\n==== summary")
    for part in chosen:
        print(f"{part.name}: {results[part.name][0]}")
    passed = sum(outcome.startswith("passed") for outcome, _ in results.values())
    print(f"CUDA tests: {passed} of {len(chosen)} parts passed")
    sys.exit(passed != len(chosen))


if __name__ == "__main__":
    main()
